"""Gathering finished runs from their folders."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.errors import DataError, UserError
from vcl_radial.experiments.run_folder import finished_fault, read_spec
from vcl_radial.metrics import summary

COLUMNS = ["task_trained", "task_evaluated", "metric", "value"]

_SPEC_KEYS = ("benchmark", "method", "seed", "evaluate_on", "recipe", "stream")
_ENVIRONMENT_KEYS = ("device", "processor", "threads", "packages", "seconds", "finished", "tasks")


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder holds.

    Attributes:
        path: the folder.
        spec: the resolved spec.
        environment: where the numbers came from.
        tidy: the scores, with the columns of accuracy.csv.
        benchmark: its name, with the data it was scored on unless these are the test data; where
            runs of one name differ in their streams, with what differs.
        method: its name; where runs of one name differ in their recipes, with what differs.
    """

    path: Path
    spec: dict[str, Any]
    environment: dict[str, Any]
    tidy: pd.DataFrame
    benchmark: str
    method: str


def gather(folder: Path) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs below a folder, by benchmark, method and seed, and what was passed over.

    Raises:
        UserError: the folder is not there or holds no finished run.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    runs, passed_over = [], []
    first: dict[str, FinishedRun] = {}
    for path in sorted(path for path in folder.glob("**/seed-*") if path.is_dir()):
        fault = finished_fault(path)
        if fault is None:
            try:
                run = _read(path)
                twin = first.setdefault(repr(run.spec), run)
                if twin is run:
                    runs.append(run)
                    continue
                fault = f"{path} is the same run as {twin.path}"
            except (OSError, ValueError, LookupError, TypeError, DataError) as error:
                fault = f"{path} is not a run folder of this suite ({error})"
        passed_over.append(f"{path}: {fault}" if fault == "not finished" else fault)
    if not runs:
        raise UserError(f"{folder}: holds no finished run; give a folder that was given to --out")
    # Other tasks or other data are another measurement, other settings of a recipe another method.
    words = _what_differs(runs, ("stream",), lambda run: (run.benchmark, run.spec["evaluate_on"]))
    runs = [replace(r, benchmark=r.benchmark + w) for r, w in zip(runs, words, strict=True)]
    words = _what_differs(runs, ("recipe",), lambda run: (run.benchmark, run.method))
    runs = [replace(r, method=r.method + w) for r, w in zip(runs, words, strict=True)]
    return sorted(runs, key=lambda run: (run.benchmark, run.method, run.spec["seed"])), passed_over


def _read(path: Path) -> FinishedRun:
    spec = read_spec(path)
    tidy = pd.read_csv(io.StringIO((path / "accuracy.csv").read_text()))
    if list(tidy.columns) != COLUMNS:
        raise ValueError(f"accuracy.csv has the columns {', '.join(map(str, tidy.columns))}")
    environment = json.loads((path / "environment.json").read_text())
    for table, keys in ((spec, _SPEC_KEYS), (environment, _ENVIRONMENT_KEYS)):
        for key in keys:
            table[key]
    summary(tidy)  # refuses a table that is damaged or has gaps
    scored_on = "" if spec["evaluate_on"] == "test" else f" ({spec['evaluate_on']} data)"
    return FinishedRun(path, spec, environment, tidy, spec["benchmark"] + scored_on, spec["method"])


def results_table(runs: list[FinishedRun]) -> pd.DataFrame:
    """One tidy table of many runs: `benchmark, method, seed` and the columns of accuracy.csv."""
    tables = [
        run.tidy.assign(benchmark=run.benchmark, method=run.method, seed=run.spec["seed"])
        for run in runs
    ]
    return pd.concat(tables, ignore_index=True)[["benchmark", "method", "seed", *COLUMNS]]


def _what_differs(
    runs: Sequence[FinishedRun], tables: Sequence[str], group: Callable[[FinishedRun], Hashable]
) -> list[str]:
    """For each run, what tells it from others of its group in these tables of the spec, or ""."""
    settings = [_flat({table: run.spec[table] for table in tables}) for run in runs]
    groups: dict[Hashable, list[dict[str, Any]]] = {}
    for run, table in zip(runs, settings, strict=True):
        groups.setdefault(group(run), []).append(table)
    differing = {name: _differing(members) for name, members in groups.items()}
    texts = [
        ", ".join(
            f"{key.removeprefix('recipe.')}={table.get(key)}" for key in differing[group(run)]
        )
        for run, table in zip(runs, settings, strict=True)
    ]
    return [f" ({text})" if text else "" for text in texts]


def _differing(tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that do not have one value in all tables."""
    keys = sorted({key for table in tables for key in table})
    return [key for key in keys if len({repr(table.get(key)) for table in tables}) > 1]


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
