"""Sections of a report for all tracks: functions of the table of scores and the table of runs.

A section states the columns and metrics that it needs. It is None where the tables lack them, and
`shown` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import tomli_w

from vcl_radial.reporting import figures
from vcl_radial.reporting.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    Text,
    with_spread,
)
from vcl_radial.reporting.figures.differences import difference_table
from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds
from vcl_radial.reporting.figures.tables import column, printed, shown_scores
from vcl_radial.reporting.labels import file_name, unused

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.runs.track import FinishedRun

_UNITS = (
    "Accuracy, forgetting, transfer and ECE in per cent, NLL in nats; mean ± standard error over "
    "seeds."
)


def shown(sections: Iterable[Section | None]) -> list[Section]:
    """The sections whose columns the tables have."""
    return [section for section in sections if section is not None]


def leaderboard(scores: pd.DataFrame, by_run: pd.DataFrame, names: Sequence[str]) -> Section:
    """Every score and cost of every method over its seeds, and the final model on every task.

    Args:
        scores: scores of tasks.
        by_run: their table of `figures.seed_table`.
        names: names of the tasks.
    """
    table = figures.summary_table(by_run)
    draw = partial(figures.final_bars, scores, tasks=names)
    final = Figure("final-model", draw, "Accuracy of the final network on every task")
    files = {"summary.csv": figures.to_csv(table), "results.csv": figures.to_csv(scores)}
    return Section("Leaderboard", [figures.board(table), Text(_UNITS), final], files)


def against_first(scores: pd.DataFrame) -> Section:
    """Average accuracy of the other methods minus that of the first, paired by seed."""
    reference, *others = figures.method_names(scores)
    differences = figures.paired_differences(scores, reference)
    blocks: list[Block] = []
    if not differences.empty:
        note = (
            f"Average accuracy minus that of {reference}, paired by seed. p is that of the exact "
            "two-sided sign-flip test, by Holm's correction over all rows; fewer than six seeds "
            "have none. The effect size d_z is the mean of the differences over their standard "
            "deviation."
        )
        blocks += [Text(note), difference_table(differences)]
    not_compared = sorted(set(others) - set(differences["method"]))
    if not_compared:
        note = f"Fewer than two seeds in common with {reference}, so no comparison: "
        blocks.append(Text(f"{note}{', '.join(not_compared)}."))
    if not others:
        blocks.append(Text("There is no other method to compare with."))
    return Section(f"Against {reference}", blocks, {"differences.csv": figures.to_csv(differences)})


def curves(scores: pd.DataFrame) -> Section | None:
    """Average accuracy over the tasks seen so far, after every task; needs several tasks.

    Its numbers are the rows "seen" of `matrices.csv`.
    """
    if scores["task"].max() < 2:
        return None
    alt = "Average accuracy over the tasks seen so far, after every task"
    picture = Figure("accuracy-over-tasks", partial(figures.accuracy_curves, scores), alt)
    return Section("Accuracy over tasks", [picture])


def matrices(scores: pd.DataFrame, names: Sequence[str]) -> Section:
    """Accuracy on every task after every task, as heatmaps."""
    files = {"matrices.csv": figures.to_csv(matrix_table(figures.all_over_seeds(scores)))}
    title = "Accuracy on every task after every task"
    return Section(title, heatmaps(scores, names), files)


def heatmaps(scores: pd.DataFrame, names: Sequence[str], metric: str = "accuracy") -> list[Block]:
    """A heatmap per method, and one sheet of all methods for pages.

    Args:
        scores: scores of tasks.
        names: names of the tasks.
        metric: the metric to show, in per cent.
    """
    methods = figures.method_names(scores)
    several = len(methods) > 1
    draw = partial(figures.heatmap_sheet, scores, tasks=names, metric=metric)
    pictures: dict[str, Figure] = {}
    for method in methods:
        stem = unused(f"heatmap-{file_name(method)}", pictures)
        alone = partial(draw, methods=[method])
        pictures[stem] = Figure(stem, alone, f"Heatmap of {method}", on_page=not several)
    if several:
        pictures["heatmaps"] = Figure("heatmaps", draw, "Heatmaps of all methods")
    return list(pictures.values())


def matrix_table(summaries: Sequence[AccuracyOverSeeds]) -> pd.DataFrame:
    """The table of the numbers in the heatmaps.

    Returns:
        One row per method and cell: `benchmark, method, after, task`, the mean accuracy over the
        seeds in per cent and its standard error `mean, se`. Rows with the `task` "seen" hold the
        average over the tasks seen so far.
    """
    import pandas as pd

    rows: list[tuple[object, ...]] = []
    for s in summaries:
        for i in s.rows:
            cells = zip(s.mean[i - 1], s.error[i - 1], strict=True)
            rows += [(s.benchmark, s.method, i, j, *cell) for j, cell in enumerate(cells, start=1)]
            rows.append((s.benchmark, s.method, i, "seen", s.seen_mean[i - 1], s.seen_error[i - 1]))
    columns = ["benchmark", "method", "after", "task", "mean", "se"]
    return pd.DataFrame(rows, columns=columns).astype({"mean": float, "se": float})


def matrices_in_numbers(scores: pd.DataFrame, names: Sequence[str]) -> Section:
    """The numbers of the heatmaps as tables."""
    note = Text("In per cent; the last column is the mean over the tasks seen so far.")
    tables = [matrix(summary, names) for summary in figures.all_over_seeds(scores)]
    return Section("Accuracy in numbers", [note, *tables], folded=True)


def matrix(summary: AccuracyOverSeeds, names: Sequence[str]) -> Table:
    """The numbers of the heatmap of one method as a table."""
    rows = []
    for i in summary.rows:
        means = [*summary.mean[i - 1], summary.seen_mean[i - 1]]
        errors = [*summary.error[i - 1], summary.seen_error[i - 1]]
        cells = [with_spread(float(m), float(e), 2) for m, e in zip(means, errors, strict=True)]
        rows.append(["all tasks" if summary.joint else f"task {i}", *cells])
    head = Column("after training", is_text=True)
    return Table([head, *names, "mean of tasks seen"], rows, title=summary.method)


def single_runs(by_run: pd.DataFrame, runs: pd.DataFrame) -> Section:
    """Every score of every run over tasks, without empty columns, and the run's folder.

    Args:
        by_run: a table of `figures.seed_table`.
        runs: the table of its runs.
    """
    folders = runs.set_index(["method", "seed"])["folder"]
    known = shown_scores(by_run)
    rows = [
        [
            run["method"],
            str(run["seed"]),
            *(Cell(printed(name, float(run[name])), float(run[name])) for name in known),
            folders[run["method"], run["seed"]],
        ]
        for run in by_run.to_dict("records")
    ]
    method, folder = (Column(name, is_text=True) for name in ("method", "folder"))
    table = Table([method, "seed", *map(column, known), folder], rows)
    return Section("Single runs", [table], {"runs.csv": figures.to_csv(by_run)}, folded=True)


def settings(finished: Sequence[FinishedRun]) -> Section:
    """The resolved spec of each method's runs, without the seed."""
    first = {run.method: run for run in reversed(finished)}
    blocks: list[Block] = []
    for method in dict.fromkeys(run.method for run in finished):
        spec = first[method].spec
        table = spec.model_dump(exclude={"seed"}, exclude_none=True, exclude_unset=True)
        blocks += [Text(method), Text(tomli_w.dumps(table), style="code")]
    return Section("Settings", blocks, folded=True)
