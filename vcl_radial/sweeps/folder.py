"""The folder of a sweep: its specification, its runs and the table of trials.

`<out>/<name>/` holds `sweep.toml`, the searched keys with the initial recipes; `trials.csv`, one
row per trial; `runs/`, ordinary run folders; and `spent.json`, the time that a sweep with `hours`
has taken.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w

from vcl_radial.errors import UserError
from vcl_radial.files.reading import parse_toml, read_json, read_text
from vcl_radial.reporting.labels import flat
from vcl_radial.runs import tracks
from vcl_radial.runs.folder import RunFolder, write_atomically
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps.plans import Plan
from vcl_radial.sweeps.study import Study

COLUMNS = (
    "benchmark",
    "method",
    "chosen_for",
    "trial",
    "outcome",
    "score",
    "standard_error",
    "words",
    "runs",
)
"""Columns of trials.csv before the searched keys; `chosen_for` only for settings per seed."""

_MAY_CHANGE = ("owner", "description", "trials", "hours", "benchmark", "method")


@dataclass(frozen=True)
class SweepFolder:
    """The folder `<out>/<name>/`."""

    path: Path

    @property
    def runs(self) -> Path:
        """The folder of the run folders."""
        return self.path / "runs"

    def run(self, run: RunSpec) -> RunFolder[Any]:
        """The folder of a run."""
        folder: RunFolder[Any] = RunFolder(self.runs, run)
        return folder

    def claim(self, plans: Sequence[Plan]) -> str:
        """Write the specification, or check that it is the same; return the folder's id.

        Raises:
            UserError: the folder holds another sweep.
        """
        path = self.path / "sweep.toml"
        table = described(plans)
        owner = uuid.uuid4().hex
        try:
            known = read_described(path)
            owner = known["owner"]
            difference = _difference(known, table)
        except FileNotFoundError:
            difference = None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            print(f"{path}: damaged; written again", flush=True)
            difference = None
        if difference is not None:
            raise UserError(
                f"holds a sweep with another {difference}; choose another folder with --out, or "
                "delete this one",
                path,
            )
        text = tomli_w.dumps({"owner": owner, **table})
        write_atomically(path, f"{_stamp(text)}\n{text}")
        return owner

    def write_trials(self, studies: Sequence[Study]) -> None:
        """Write the table of all trials that have ended; equal sweeps give equal bytes."""
        sweep = studies[0].plan.sweep
        rows = [
            {
                "benchmark": study.plan.base.benchmark,
                "method": study.plan.base.method,
                "chosen_for": study.plan.chosen_for,
                "trial": number,
                **vars(result),
                "runs": " ".join(self.run(run).path.name for run in study.trials[number].runs),
                **study.trials[number].parameters,
            }
            for study in studies
            for number, result in sorted(study.results.items())
        ]
        columns = [column for column in COLUMNS if sweep.per_seed or column != "chosen_for"]
        table = pd.DataFrame(rows, columns=[*columns, *sweep.search], dtype=object)
        write_atomically(self.path / "trials.csv", table.to_csv(index=False))

    def read_spent(self) -> tuple[float, dict[str, int]]:
        """Read the seconds that the sweep has taken, and the number of trials of each search."""
        try:
            table = read_json(self.path / "spent.json")
            return float(table["seconds"]), {str(k): int(n) for k, n in table["trials"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return 0.0, {}

    def write_spent(self, seconds: float, trials: dict[str, int]) -> None:
        """Write the values that `read_spent` reads."""
        text = json.dumps({"seconds": seconds, "trials": trials}, indent=2)
        write_atomically(self.path / "spent.json", f"{text}\n")


def described(plans: Sequence[Plan]) -> dict[str, Any]:
    """The table of `sweep.toml`: the keys of the sweep, and the initial settings of its runs."""
    sweep = plans[0].sweep.model_dump(exclude_none=True)
    for key in ("resplit", "per_seed", "shares"):
        if not sweep[key]:
            del sweep[key]  # older sweeps have no such key
    searched = {
        key: {k: v for k, v in domain.items() if v not in ({}, None)}
        for key, domain in sweep.pop("search").items()
    }
    starts = [plan.base.settings() for plan in plans]
    if not plans[0].sweep.per_seed:
        for start in starts:
            del start["seed"]
    return {**sweep, "search": searched, "start": starts}


def read_described(path: Path) -> dict[str, Any]:
    """Read the table that `claim` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged.
    """
    stamp, text = read_text(path).split("\n", 1)
    if stamp != _stamp(text):
        raise ValueError("the checksum is that of another text")
    return parse_toml(text)


def _stamp(text: str) -> str:
    """The first line of `sweep.toml`, with the checksum of the others."""
    return f"# sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def chosen_for(start: Mapping[str, Any]) -> str | None:
    """The key for which a search chooses settings: its initial settings have a seed; or None."""
    return tracks.from_tables(start).selection_unit(start) if "seed" in start else None


def label_of(start: Mapping[str, Any]) -> str:
    """The `Plan.label` of the initial settings of a search."""
    parts = (start["benchmark"], start["method"], chosen_for(start))
    return "/".join(part for part in parts if part is not None)


def cell(value: Any) -> str:
    """The text of a value in trials.csv; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def _difference(known: Mapping[str, Any], table: Mapping[str, Any]) -> str | None:
    """The first key in which two sweeps differ; more trials or methods make no difference."""
    more = {*_MAY_CHANGE, "start", *(["seeds"] if table.get("per_seed") else [])}
    old, new = (flat({k: v for k, v in one.items() if k not in more}) for one in (known, table))
    if key := _changed(old, new):
        return key
    for start in known["start"]:
        twins = [one for one in table["start"] if _unit(one) == _unit(start)]
        if twins and start not in twins:
            return f"{_changed(flat(start), flat(twins[0]))} of {start['method']}"
    return None


def _unit(start: Mapping[str, Any]) -> tuple[Any, ...]:
    return start["benchmark"], start["method"], start.get("seed")


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first key with another value."""
    return next((k for k in sorted({*old, *new}) if old.get(k) != new.get(k)), None)
