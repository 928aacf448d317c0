"""The finished runs of a block as a table, and differences between methods with their verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from reports.central.cells import Block, Done, cells_of, estimates
from vcl_radial.metrics.clusters import FEWEST_CLUSTERS, Interval, bootstrap_interval
from vcl_radial.metrics.estimates import estimate_over_splits
from vcl_radial.metrics.seeds import mean_and_standard_error
from vcl_radial.metrics.verdicts import POINTS_OF_ACCURACY, side_of_interval

SCORES = {"accuracy": "average_accuracy", "learnt": "learning_accuracy", "forgotten": "forgetting"}
"""Columns of tables, and the stored metrics: all in points."""


class Status(NamedTuple):
    """The progress of a block.

    Attributes:
        done: number of finished cells.
        cells: number of all cells.
        hours: core-hours left.
    """

    done: int
    cells: int
    hours: float

    @property
    def complete(self) -> bool:
        """Whether all cells are finished."""
        return self.done == self.cells


def status(block: Block, queue: Path, done: Done) -> Status:
    """The progress of a block."""
    cells = cells_of(block, queue, done, to_count=True)
    left = [cell for cell in cells if cell.name not in done]
    seconds = estimates(done, queue)
    hours = sum(seconds(cell) or 0.0 for cell in left) / 3600
    return Status(len(cells) - len(left), len(cells), hours)


def chance(benchmark: str) -> float:
    """The accuracy of a guess (%), which a run that diverged counts as."""
    if benchmark == "omniglot":
        return 5.0
    return 10.0 if "single-head" in benchmark or "permuted" in benchmark else 50.0


def runs(block: Block, queue: Path, done: Done) -> pd.DataFrame:
    """A row for each finished cell: its name, settings, metrics of the whole run and `diverged`.

    Layers and tasks are averaged: `start_noise` and `start_scale` have the columns `low_` and
    `high_` of the smallest and the largest layer, `layer_moved` is the mean of later tasks.
    """
    return pd.DataFrame(
        [
            {
                "benchmark": cell.name[1],
                "method": cell.name[2],
                "part": cell.evaluate_on,
                "seed": cell.seed,
                **cell.settings,
                **_numbers(cell.name[1], done[cell.name]),
            }
            for cell in cells_of(block, queue, done)
            if cell.name in done
        ]
    )


def _numbers(benchmark: str, rows: Sequence[dict[str, str]]) -> dict[str, float]:
    if any(row["metric"] == "diverged" for row in rows):
        guess = chance(benchmark)
        return {"diverged": 1.0, "accuracy": guess, "learnt": guess, "forgotten": 0.0}
    stored = {row["metric"]: float(row["value"]) for row in rows if not row["task"]}
    numbers = {"diverged": 0.0} | {key: stored.get(of, math.nan) for key, of in SCORES.items()}
    for key in ("scale", "noise", "group_size"):
        of_layers = [float(row["value"]) for row in rows if row["metric"] == f"start_{key}"]
        if of_layers:
            numbers |= {f"low_{key}": min(of_layers), f"high_{key}": max(of_layers)}
    for key in ("moved", "units_at_rest"):
        later = [
            float(row["value"])
            for row in rows
            if row["metric"] == f"layer_{key}" and int(row["after"]) > 1
        ]
        if later:
            numbers[key] = mean_and_standard_error(x for x in later if not math.isnan(x))[0]
    return numbers


def means(
    table: pd.DataFrame, by: Sequence[str], scores: Sequence[str] = (*SCORES,)
) -> pd.DataFrame:
    """Means and standard errors (`SCORE ±`) over the runs of each kind, with their number `n`."""
    lines = []
    for kind, of in table.groupby([*by], sort=False, dropna=False):
        line: dict[str, Any] = dict(zip(by, kind, strict=True)) | {"n": len(of)}
        for score in scores:
            line[score], line[f"{score} ±"] = mean_and_standard_error(of[score])
        lines.append(line)
    return pd.DataFrame(lines, columns=None if lines else [*by, "n", *scores])


class Comparison(NamedTuple):
    """A paired difference of two methods.

    Attributes:
        values: the mean difference of each cluster.
        interval: its 95 % interval; nan for fewer than four clusters.
        side: above, below, within or undecided.
    """

    values: tuple[float, ...]
    interval: Interval
    side: str

    @property
    def mean(self) -> float:
        """The mean over clusters; nan without any."""
        return mean_and_standard_error(self.values)[0]

    def __str__(self) -> str:
        if not self.values:
            return "–"
        if math.isnan(self.interval.low):
            return f"{self.mean:+.2f} (" + ", ".join(f"{x:+.2f}" for x in self.values) + ")"
        return f"{self.mean:+.2f} ({self.interval.low:+.2f} to {self.interval.high:+.2f})"


def compare(
    first: pd.DataFrame,
    second: pd.DataFrame,
    score: str = "accuracy",
    cluster: str = "seed",
    pair: Sequence[str] = ("seed",),
) -> Comparison:
    """First minus second, paired by columns, with a bootstrap over clusters.

    With fewer than four clusters there is no interval; "within" is then said by two one-sided t
    tests, and no side is.
    """
    keys = list(dict.fromkeys([cluster, *pair]))
    both = first.set_index(keys)[score] - second.set_index(keys)[score]
    groups = [of.tolist() for _, of in both.dropna().groupby(level=cluster)]
    values = tuple(mean_and_standard_error(of)[0] for of in groups)
    if len(groups) >= FEWEST_CLUSTERS:
        interval, narrow = bootstrap_interval(groups), bootstrap_interval(groups, 0.9)
    else:
        interval = Interval(math.nan, math.nan)
        narrow = Interval(*estimate_over_splits(values).interval(0.9)) if values else interval
    return Comparison(values, interval, side_of_interval(interval, narrow, POINTS_OF_ACCURACY))
