"""The folder of a sweep: its specification, its runs and the table of trials.

`<out>/<name>/` holds `sweep.toml`, the searched keys with the initial recipes; `trials.csv`, one
row per trial; `runs/`, ordinary run folders; `spent.json`, the time that a sweep with `hours` has
taken; `lock`, locked while a sweep is running.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.files.reading import parse_toml, read_json, read_text
from vcl_radial.runs import tracks
from vcl_radial.runs.folder import RunFolder, write_atomically
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps.plans import Plan
from vcl_radial.sweeps.space import Parameters
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
)
"""Columns of trials.csv before the searched keys; `chosen_for` only for settings per seed."""

_MAY_CHANGE = ("owner", "description", "trials", "hours", "benchmark", "method", "checksums")


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

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder inside.

        Raises:
            UserError: another sweep holds the lock, or the folder cannot be written to.
        """
        from filelock import FileLock, Timeout

        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / "lock", timeout=0)
            lock.acquire()
        except Timeout:
            raise UserError(
                f"{self.path}: another sweep is running in this folder; wait for it, stop it, or "
                "choose another folder with --out"
            ) from None
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be used: {error.strerror}; choose another folder with --out"
            ) from None
        try:
            yield
        finally:
            lock.release()

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
                        f"{path}: holds a sweep with another {difference}; choose another folder "
                        "with --out, or delete this one"
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
    sums = {plan.label: labelled for plan in plans if (labelled := _choice_checksums(plan))}
    return {**sweep, **({"checksums": sums} if sums else {}), "search": searched, "start": starts}


def _choice_checksums(plan: Plan) -> dict[str, str]:
    """Checksums of a user's code and data among the choices, as their names may stay the same.

    The initial settings hold the checksums of their code and data.
    """
    base = _checksums(plan.base)
    examples = plan.space.examples
    by_choice = {}
    for key, domain in plan.sweep.search.items():
        for value in domain.extremes():
            example = next((e for e in examples if e.get(key) == value), None)
            if isinstance(value, str) and example is not None:
                sums = _checksums(_run_with(plan, key, value, example))
                if sums != base:
                    by_choice[f"{key} = {value!r}"] = " ".join(sums)
    return by_choice


def _run_with(plan: Plan, key: str, value: str, example: Parameters) -> RunSpec:
    """A run with a value of a key; other keys are the plan's, or the example's if necessary."""
    try:
        return plan.run({key: value}, plan.base.seed)
    except UserError:
        return plan.run(example, plan.base.seed)


def _checksums(run: RunSpec) -> list[str]:
    settings = run.settings()
    return [
        settings.get("code", ""),
        settings[tracks.find(run.TRACK).spec.DATA].get("checksum", ""),
    ]


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
    columns = columns_of(per_seed=sweep.per_seed)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *sweep.search])
    for study in studies:
        for number, result in sorted(study.results.items()):
            parameters: Parameters = study.trials[number].parameters
            base = study.plan.base
            row = {"benchmark": base.benchmark, "method": base.method, "trial": number}
            row |= {"chosen_for": study.plan.chosen_for, **vars(result)}
            values = [*(row[column] for column in columns), *map(parameters.get, sweep.search)]
            writer.writerow(map(cell, values))
    return text.getvalue()


def columns_of(*, per_seed: bool) -> list[str]:
    """The columns of trials.csv before the searched keys."""
    return [column for column in COLUMNS if per_seed or column != "chosen_for"]


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
    for label in map(label_of, table["start"]):
        new = table.get("checksums", {}).get(label, {})
        for choice, checksum in known.get("checksums", {}).get(label, {}).items():
            if new.get(choice) != checksum:
                return f"code or data of {choice}"
    return None
