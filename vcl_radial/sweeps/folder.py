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

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.files.reading import parse_toml, read_json, read_text
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
        if path.exists():
            known = read_described(path)
            if known is None:
                print(f"{path}: damaged; written again", flush=True)
            else:
                owner = known["owner"]
                try:
                    with outside.named_by(path):
                        difference = _difference(known, table)
                except outside.Untrusted:
                    difference = "track"
                if difference is not None:
                    raise UserError(
                        f"holds a sweep with another {difference}; choose another folder "
                        "with --out, or delete this one",
                        path,
                    )
        text = tomli_w.dumps({"owner": owner, **table})
        write_atomically(path, f"# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n{text}")
        return owner

    def write_trials(self, studies: Sequence[Study]) -> None:
        """Write the table of all trials that have ended."""
        write_atomically(self.path / "trials.csv", table(studies))

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


def read_described(path: Path) -> dict[str, Any] | None:
    """Read the table that `claim` wrote; None if it is damaged."""
    try:
        stamp, text = read_text(path).split("\n", 1)
        if stamp != f"# sha256 {hashlib.sha256(text.encode()).hexdigest()}":
            return None
        table = parse_toml(text)
        keys = {"owner", "kind", "seeds", "objective", "search"}
        whole = keys <= table.keys() and all(
            start.keys() >= {"benchmark", "method", "recipe"} for start in table["start"]
        )
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return None
    return table if whole else None


def table(studies: Sequence[Study]) -> str:
    """The CSV of all trials that have ended; equal sweeps give equal bytes."""
    sweep = studies[0].plan.sweep
    rows = [
        {
            "benchmark": study.plan.base.benchmark,
            "method": study.plan.base.method,
            "chosen_for": study.plan.chosen_for,
            "trial": number,
            **vars(result),
            "runs": " ".join(RunFolder(Path(), run).path.name for run in study.trials[number].runs),
            **study.trials[number].parameters,
        }
        for study in studies
        for number, result in sorted(study.results.items())
    ]
    columns = [column for column in COLUMNS if sweep.per_seed or column != "chosen_for"]
    return pd.DataFrame(rows, columns=[*columns, *sweep.search], dtype=object).to_csv(index=False)


def label_of(start: Mapping[str, Any]) -> str:
    """The `Plan.label` of the initial settings of a search; these have a seed if it is per seed."""
    chosen_for = [tracks.from_tables(start).selection_unit(start)] if "seed" in start else []
    return "/".join([start["benchmark"], start["method"], *chosen_for])


def cell(value: Any) -> str:
    """The text of a value in trials.csv; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(value)


def _difference(known: dict[str, Any], table: dict[str, Any]) -> str | None:
    """The first difference between two sweeps; more trials or methods make no difference."""
    more = {*_MAY_CHANGE, *(["seeds"] if table.get("per_seed") else [])}
    for key in sorted((known.keys() | table.keys()) - more):
        old, new = known.get(key), table.get(key)
        if key == "start":
            before, now = ({label_of(s): s for s in starts} for starts in (old or [], table[key]))
            pairs = [(before[name], now[name]) for name in before.keys() & now.keys()]
            if any(one != other for one, other in pairs):
                if all({**one, "code": ""} == {**other, "code": ""} for one, other in pairs):
                    return "code of the classes or functions that you have written"
                return f"recipe or {tracks.from_tables(table[key][0]).spec.DATA} to start from"
        elif isinstance(old, dict) and isinstance(new, dict) and old != new:
            return f"{key}.{next(k for k in sorted(old | new) if old.get(k) != new.get(k))}"
        elif old != new:
            return repr(key)
    return None
