"""Result files: one for each finished piece of work, written at once and whole.

A file holds what decided its numbers. One that is damaged, or that belongs to something else,
counts as not finished: the same command does it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from vcl_radial.errors import UserError
from vcl_radial.runs.environment import distinct
from vcl_radial.runs.folder import write_atomically
from vcl_radial.runs.settings import Settings, digest_of


class Unit(Settings):
    """What decides the numbers of a piece of work.

    Attributes:
        method: its name.
        seed: of all random numbers.
    """

    method: str
    seed: int

    def path(self, out: Path) -> Path:
        """Of its result file: `<out>/<method>/seed-<n>-<hash of the rest>.json`."""
        digest = digest_of(self.model_dump(mode="json"))[:12]
        return out / self.method / f"seed-{self.seed}-{digest}.json"


AnyUnit = TypeVar("AnyUnit", bound=Unit)


def write(
    unit: Unit, out: Path, numbers: Mapping[str, Any], environment: Mapping[str, Any]
) -> None:
    """Write a unit's result file.

    Raises:
        UserError: it cannot be written.
    """
    content = {
        "unit": unit.model_dump(mode="json"),
        "numbers": numbers,
        "environment": environment,
    }
    checked = {"sha256": _digest(content)} | content
    write_atomically(unit.path(out), json.dumps(checked, indent=1) + "\n")


def read(unit: Unit, out: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """A unit's numbers and where they came from; None if it is not finished."""
    try:
        content = json.loads(unit.path(out).read_text(encoding="utf-8"))
        checksum = content.pop("sha256")
        same = checksum == _digest(content) and content["unit"] == unit.model_dump(mode="json")
        return (content["numbers"], content["environment"]) if same else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def read_all(
    units: Sequence[AnyUnit], out: Path
) -> list[tuple[AnyUnit, dict[str, Any], dict[str, Any]]]:
    """Finished units with their numbers and where they came from.

    Raises:
        UserError: a result file is gone.
    """
    results = []
    for unit in units:
        found = read(unit, out)
        if found is None:
            raise UserError(f"{unit.path(out)}: is gone; run the same command again")
        results.append((unit, *found))
    return results


def provenance(command: str, environments: Sequence[Mapping[str, Any]]) -> str:
    """Where the numbers of a page come from, as Markdown."""
    versions = sorted({str(where["packages"]["torch"]) for where in environments})
    minutes = sum(where["seconds"] for where in environments) / 60
    return "\n".join(
        [
            "## Where the numbers come from",
            "",
            f"- command: `{command}`",
            f"- commit: {distinct(environments, 'commit')}",
            f"- device: {distinct(environments, 'device')}; {distinct(environments, 'processor')}, "
            f"one thread a run; torch {', '.join(versions)}",
            f"- {minutes:.1f} minutes of training and scoring in all",
            "",
        ]
    )


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
