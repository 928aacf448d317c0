"""Heatmaps and tables of a score on every task after every task, for all tracks with tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from vcl_radial.reporting.blocks import Block, Column, Figure, Table, with_spread
from vcl_radial.reporting.labels import file_name, unused

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds


def heatmaps(results: pd.DataFrame, tasks: Sequence[str], metric: str = "accuracy") -> list[Block]:
    """A heatmap per method, and one sheet of all methods for pages.

    Args:
        results: tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        tasks: names of the tasks.
        metric: the metric to show, in per cent.
    """
    from vcl_radial.reporting import figures

    methods = figures.method_names(results)
    several = len(methods) > 1
    pictures: dict[str, Figure] = {}
    for method in methods:
        stem = unused(f"heatmap-{file_name(method)}", pictures)
        draw = partial(figures.heatmap, results, method, tasks=tasks, metric=metric)
        pictures[stem] = Figure(stem, draw, f"Heatmap of {method}", on_page=not several)
    if several:
        draw = partial(figures.heatmap_sheet, results, tasks=tasks, metric=metric)
        pictures["heatmaps"] = Figure("heatmaps", draw, "Heatmaps of all methods")
    return list(pictures.values())


def matrix_table(summaries: Sequence[AccuracyOverSeeds]) -> pd.DataFrame:
    """The table of the numbers in the heatmaps.

    Returns:
        One row per method and cell: `benchmark, method, task_trained, task_evaluated`, the mean
        accuracy over the seeds in per cent and its standard error `mean, se`. Rows with the
        `task_evaluated` "seen" hold the average over the tasks seen so far.
    """
    import pandas as pd

    rows: list[tuple[object, ...]] = []
    for s in summaries:
        for i in s.rows:
            cells = zip(s.mean[i - 1], s.error[i - 1], strict=True)
            rows += [(s.benchmark, s.method, i, j, *cell) for j, cell in enumerate(cells, start=1)]
            rows.append((s.benchmark, s.method, i, "seen", s.seen_mean[i - 1], s.seen_error[i - 1]))
    columns = ["benchmark", "method", "task_trained", "task_evaluated", "mean", "se"]
    return pd.DataFrame(rows, columns=columns).astype({"mean": float, "se": float})


def matrix(summary: AccuracyOverSeeds, tasks: Sequence[str]) -> Table:
    """The numbers of the heatmap of one method as a table."""
    rows = []
    for i in summary.rows:
        means = [*summary.mean[i - 1], summary.seen_mean[i - 1]]
        errors = [*summary.error[i - 1], summary.seen_error[i - 1]]
        cells = [with_spread(float(m), float(e), 2) for m, e in zip(means, errors, strict=True)]
        rows.append(["all tasks" if summary.joint else f"task {i}", *cells])
    head = Column("after training", is_text=True)
    return Table([head, *tasks, "mean of tasks seen"], rows, title=summary.method)
