"""One long table of scores for all tracks, and a table of their runs.

`scores_table(finished)` has a row for every score of every run, with the columns `COLUMNS`, and
after them those of a track, such as `uncertainty` and `referred`. `runs_table(finished)` has a row
for every run, with the index `run`: its data and folder, and what it cost. Sections are functions
of these tables. A track maps its stored files to such rows in `Track.scores`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.metrics import METRICS, mean_and_standard_error
from vcl_radial.runs.track import FinishedRun

RUN = ("run", "benchmark", "method", "seed")
"""The columns that name the run of a score; `run` is its number."""

COLUMNS = (*RUN, "after", "task", "part", "metric", "value")
"""The columns of every table of scores.

`after` is the number of steps of the track: tasks, sites, slices or rounds, 0 before training.
`task` is the number of the task that is scored, 0 if it is none of a sequence. `part` is the data
that are scored, such as `test`.
"""

IDENTITY = ("method", "after", "task", "part", "metric", "uncertainty", "referred")
"""The columns that identify a score of a method, as far as a table has them.

`uncertainty` ranks the points, and `referred` is the share of the least certain ones left out.
"""

SPREAD = ("error_within", "lower", "upper")
"""Spread of a score within a run, such as over patients: standard error, 5 and 95 % quantiles."""

UNCERTAINTY_NAMES = {"mutual_information": "MI", "entropy": "entropy"}
"""Printed names of uncertainties, the first that is known ranks the points."""


def scores_table(finished: Sequence[FinishedRun]) -> pd.DataFrame:
    """Every score of every run, one per row, in the order of the runs and of their steps."""
    if not finished:
        return pd.DataFrame(columns=[*COLUMNS])
    tables = []
    for number, run in enumerate(finished):
        table = run.track.scores(run)
        defaults = {"after": 0, "task": 0, "part": run.spec.evaluate_on}
        named = (number, run.benchmark, run.method, run.spec.seed)
        known: dict[str, Any] = dict(zip(RUN, named, strict=True))
        known |= {name: value for name, value in defaults.items() if name not in table}
        tables.append(table.assign(**known))
    table = pd.concat(tables, ignore_index=True)
    return table[[*COLUMNS, *(name for name in table if name not in COLUMNS)]]


def runs_table(finished: Sequence[FinishedRun]) -> pd.DataFrame:
    """The runs: `benchmark, method, seed, data, folder`, and the metrics that are costs.

    An unknown cost is nan.
    """
    costs = [name for name, metric in METRICS.items() if metric.of == "cost"]
    rows = []
    for run in finished:
        data, seconds = {**run.spec.stream, **run.spec.data}, run.environment["seconds"]
        names = [str(data[key]) for key in ("dataset", "set", "table") if data.get(key)]
        by_phase = seconds if isinstance(seconds, dict) else {"training": seconds}
        known = {**run.environment} | {
            f"{phase}_seconds": value for phase, value in by_phase.items()
        }
        rows.append(
            {
                "benchmark": run.benchmark,
                "method": run.method,
                "seed": run.spec.seed,
                "data": Path(names[0]).name.partition(".")[0] if names else "",
                "folder": "/".join(run.path.parts[-3:]),
                **{name: known.get(name) for name in costs},
            }
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(costs, float)).rename_axis("run")


def joined(finished: Sequence[FinishedRun], name: str) -> pd.DataFrame:
    """One table of the runs that have it, after `benchmark, method, seed`; empty if none has.

    Args:
        finished: runs of one track.
        name: the name of the table in `Track.read`.
    """
    tables = []
    for run in finished:
        if name in run.tables:
            names: dict[str, Any] = {"benchmark": run.benchmark, "method": run.method}
            names["seed"] = run.spec.seed
            tables.append(run.tables[name].assign(**names)[[*names, *run.tables[name]]])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


AVALANCHE = "avalanche"
"""The part of the values of Avalanche's metrics, which have names and units of their own."""


def without_avalanche(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of the suite."""
    return scores[scores["part"] != AVALANCHE]


def at_the_end(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of each run after its last step."""
    return scores[scores["after"] == scores.groupby("run")["after"].transform("max")]


def is_sequence(scores: pd.DataFrame) -> bool:
    """Whether all scores belong to tasks of a sequence, one of each metric."""
    cells = ["run", "after", "task", "metric"]
    return bool(len(scores) and scores["task"].gt(0).all() and not scores.duplicated(cells).any())


def means(scores: pd.DataFrame, by: Sequence[str] = IDENTITY) -> pd.DataFrame:
    """Mean and standard error of each score over runs, in the order of first appearance.

    Args:
        scores: rows of `scores_table`.
        by: the columns whose values name a score; those that the table lacks are left out.

    Returns:
        The columns `by`, then `seeds, mean, standard_error` (nan for a single run), and the means
        of the columns `SPREAD` of the table.
    """
    names = [name for name in by if name in scores]
    spread = [name for name in SPREAD if name in scores]
    rows = [
        (*key, len(group), *mean_and_standard_error(group["value"]), *group[spread].mean())
        for key, group in scores.groupby(names, sort=False, dropna=False)
    ]
    return pd.DataFrame(rows, columns=[*names, "seeds", "mean", "standard_error", *spread])


def over_tasks(scores: pd.DataFrame, metric: str, name: str) -> pd.DataFrame:
    """A metric of tasks on all points, for the figures of sequences, under another name.

    Without referral a score is the same for every uncertainty, so one row of each task is kept.
    """
    chosen = (scores["metric"] == metric) & (scores["task"] > 0) & (scores["referred"] == 0)
    rows = scores[chosen].drop_duplicates(["run", "after", "task"])
    return rows[[*COLUMNS]].assign(metric=name)


def main_uncertainty(known: pd.Series[str]) -> str:
    """The uncertainty that ranks points: mutual information, or entropy without draws."""
    return next((name for name in UNCERTAINTY_NAMES if (known == name).any()), "")


def ranked(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores by each method's `main_uncertainty`, and those that need none."""
    main = scores.groupby("method", sort=False)["uncertainty"].transform(main_uncertainty)
    return scores[(scores["uncertainty"] == main) | (scores["uncertainty"] == "")]
