"""What an analysis found, in words, as a file of its own: a folder fills by many commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vcl_radial.papers.analysis import Analysis, Claim
from vcl_radial.papers.names import ANALYSES
from vcl_radial.runs.folder import write_atomically


@dataclass(frozen=True)
class Record:
    """An analysis without its picture and numbers, and where it comes from.

    Attributes:
        title: of the section.
        source: the published figures.
        shown: what is drawn, paragraph by paragraph.
        settings: names and values of what was chosen.
        claims: published beside ours.
        notes: what else there is to see.
        command: what was typed.
        seconds: of processor time that it took.
        environment: as `vcl_radial.runs.environment.describe` gives it.
    """

    title: str
    source: str
    shown: Sequence[str]
    settings: Sequence[tuple[str, str]]
    claims: Sequence[Claim]
    notes: Sequence[str]
    command: str
    seconds: float
    environment: Mapping[str, Any]

    @classmethod
    def of(
        cls, done: Analysis, command: str, seconds: float, environment: Mapping[str, Any]
    ) -> Record:
        """The record of an analysis that is done."""
        return cls(
            done.title,
            done.source,
            done.shown,
            done.settings,
            done.claims,
            done.notes,
            command,
            seconds,
            environment,
        )


def write(to: Path, name: str, record: Record) -> None:
    """Keep what was found, in place of what was there.

    Raises:
        UserError: it cannot be written.
    """
    write_atomically(to / f"{name}.json", json.dumps(asdict(record), indent=1) + "\n")


def read(to: Path) -> dict[str, Record]:
    """All that a folder holds, in the order of `ANALYSES`; a damaged file is named and left out."""
    found = {}
    for name in ANALYSES:
        path = to / f"{name}.json"
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            claims = [Claim(**claim) for claim in table.pop("claims")]
            settings = [(key, value) for key, value in table.pop("settings")]
            found[name] = Record(claims=claims, settings=settings, **table)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            print(f"{path}: damaged, left out; analyse {name} again", file=sys.stderr)
    return found
