"""Gathering finished runs from their folders."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.errors import UserError
from vcl_radial.experiments.run_folder import finished_fault, read_spec

COLUMNS = ["task_trained", "task_evaluated", "metric", "value"]


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder holds."""

    path: Path
    spec: dict[str, Any]
    environment: dict[str, Any]
    tidy: pd.DataFrame

    @property
    def configuration(self) -> str:
        """The hash of the spec, which runs that differ only by the seed share."""
        return self.path.name.rsplit("-", 1)[-1]


def gather(folder: Path) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs below a folder, in the order of their paths, and what was passed over.

    Raises:
        UserError: the folder is not there or holds no finished run.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    runs, passed_over = [], []
    for spec in sorted(folder.glob("**/seed-*/spec.toml")):
        path = spec.parent
        fault = finished_fault(path)
        if fault is None:
            try:
                runs.append(_read(path))
                continue
            except (OSError, ValueError, KeyError, TypeError) as error:
                fault = f"{path} is not a run folder of this suite ({error})"
        passed_over.append(f"{path}: {fault}" if fault == "not finished" else fault)
    if not runs:
        raise UserError(f"{folder}: holds no finished run; give a folder that was given to --out")
    return runs, passed_over


def _read(path: Path) -> FinishedRun:
    spec = read_spec(path)
    tidy = pd.read_csv(io.StringIO((path / "accuracy.csv").read_text()))
    if list(tidy.columns) != COLUMNS:
        raise ValueError(f"accuracy.csv has the columns {', '.join(map(str, tidy.columns))}")
    for key in ("benchmark", "method", "seed", "recipe", "stream"):
        spec[key]
    return FinishedRun(path, spec, json.loads((path / "environment.json").read_text()), tidy)


def results_table(runs: list[FinishedRun]) -> pd.DataFrame:
    """One tidy table of many runs: `benchmark, method, seed` and the columns of accuracy.csv.

    A method that was run with several settings appears once for each, named after what differs.
    """
    labels = _labels(runs)
    tables = [
        run.tidy.assign(
            benchmark=run.spec["benchmark"], method=labels[run.path], seed=run.spec["seed"]
        )
        for run in runs
    ]
    return pd.concat(tables, ignore_index=True)[["benchmark", "method", "seed", *COLUMNS]]


def _labels(runs: list[FinishedRun]) -> dict[Path, str]:
    by_method: dict[tuple[str, str], list[FinishedRun]] = {}
    for run in runs:
        by_method.setdefault((run.spec["benchmark"], run.spec["method"]), []).append(run)
    labels = {}
    for (_, method), group in by_method.items():
        settings = {run.configuration: _flat(run.spec) for run in group}
        keys = sorted({key for table in settings.values() for key in table})
        differing = [k for k in keys if len({repr(t.get(k)) for t in settings.values()}) > 1]
        for run in group:
            table = settings[run.configuration]
            words = ", ".join(f"{k.removeprefix('recipe.')}={table.get(k)}" for k in differing)
            labels[run.path] = f"{method} ({words})" if words else method
    return labels


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested table with dotted keys, without what tells runs of one configuration apart."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif prefix or key not in ("seed", "method", "benchmark"):
            flat[prefix + key] = value
    return flat
