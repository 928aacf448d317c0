"""The tables behind the pictures, as rows of text: matrices, single runs, differences."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from vcl_radial.report.figures.layout import task_names
from vcl_radial.report.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, number
from vcl_radial.report.figures.scores import SCORES
from vcl_radial.report.figures.tables import printed

Rows = list[list[str]]

_MEAN = "mean of tasks seen"


def matrix_table(results: pd.DataFrame) -> pd.DataFrame:
    """What the heatmaps show.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.

    Returns:
        One row per method and cell: `benchmark, method, task_trained, task_evaluated`, the mean
        accuracy over the seeds in per cent and its standard error `mean, se`. The average over
        the tasks seen so far stands in rows with the `task_evaluated` "seen".
    """
    rows: list[tuple[object, ...]] = []
    for s in all_over_seeds(results):
        for i in s.rows:
            cells = zip(s.mean[i - 1], s.error[i - 1], strict=True)
            rows += [(s.benchmark, s.method, i, j, *cell) for j, cell in enumerate(cells, start=1)]
            rows.append((s.benchmark, s.method, i, "seen", s.seen_mean[i - 1], s.seen_error[i - 1]))
    columns = ["benchmark", "method", "task_trained", "task_evaluated", "mean", "se"]
    return pd.DataFrame(rows, columns=columns).astype({"mean": float, "se": float})


def matrix_rows(summary: AccuracyOverSeeds, tasks: Sequence[str] | None = None) -> Rows:
    """The heatmap of one method as rows of text, the header first."""
    header = ["after training", *task_names(tasks, summary.tasks), _MEAN]
    rows = []
    for i in summary.rows:
        cells = [*zip(summary.mean[i - 1], summary.error[i - 1], strict=True)]
        cells.append((summary.seen_mean[i - 1], summary.seen_error[i - 1]))
        moment = "all tasks" if summary.joint else f"task {i}"
        rows.append([moment, *(with_spread(float(m), float(e), 2) for m, e in cells)])
    return [header, *rows]


def seed_rows(table: pd.DataFrame) -> Rows:
    """What `seed_table` returned as rows of text, the header first; without empty columns."""
    scores = [n for n in SCORES if n in table and not table[n].isna().all()]
    header = ["method", "seed", *(SCORES[name].heading for name in scores)]
    rows = [
        [run["method"], str(run["seed"]), *(printed(name, float(run[name])) for name in scores)]
        for run in table.to_dict("records")
    ]
    return [header, *rows]


def difference_rows(table: pd.DataFrame) -> Rows:
    """What `paired_differences` returned as rows of text, the header first."""
    header = ["method", "seeds", "difference (points)", "effect size d_z", "p", "in words"]
    rows = [
        [
            str(d["method"]),
            str(d["seeds"]),
            with_spread(d["difference"], d["difference_se"], 2, sign=True),
            signed(d["effect"], 2),
            number(d["p"], 4),
            str(d["words"]),
        ]
        for d in table.to_dict("records")
    ]
    return [header, *rows]


def with_spread(mean: float, error: float, decimals: int, sign: bool = False) -> str:
    """A mean and its standard error as text: `98.73 ± 0.12`."""
    text = signed(mean, decimals) if sign else number(mean, decimals)
    return text if math.isnan(error) else f"{text} ± {number(error, decimals)}"


def signed(value: float, decimals: int) -> str:
    """A number with its sign, which tells a difference from a value; 0 has none."""
    text = number(value, decimals)
    return f"+{text}" if value > 0 and text.strip("0.") else text
