"""Sections of a report on task sequences: pure functions of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import tomli_w

from vcl_radial.reporting.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    Text,
)
from vcl_radial.reporting.sequences import heatmaps, matrix, matrix_table
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.continual.tables import layers_table, results_table, runs_costs

if TYPE_CHECKING:
    import pandas as pd


_UNITS = (
    "Accuracy, forgetting, transfer and ECE in per cent, NLL in nats; mean ± standard error over "
    "seeds."
)


def sections(runs: Sequence[FinishedRun]) -> list[Section]:
    """The leaderboard, differences, curves, heatmaps and layers; single runs and their settings.

    Raises:
        DataError: tables do not fit together.
    """
    from vcl_radial.reporting import figures

    results, layers = results_table(runs), layers_table(runs)
    tasks = runs[0].environment["tasks"]
    if runs[0].spec.stream.get("class_order") == "seed":  # classes differ between seeds
        tasks = [f"task {number}" for number in range(1, len(tasks) + 1)]
    by_seed = _by_seed(runs, results)
    table = figures.summary_table(by_seed)
    summaries = figures.all_over_seeds(results)
    methods = [summary.method for summary in summaries]
    csv = figures.to_csv
    final = Figure(
        "final-model",
        partial(figures.final_bars, results, tasks=tasks),
        "Accuracy of the final network on every task",
    )
    parts = [
        Section(
            "Leaderboard",
            [figures.board(table), Text(_UNITS), final],
            {"summary.csv": csv(table), "results.csv": csv(results)},
        ),
        _against(results, methods),
    ]
    if len(tasks) > 1:
        curves = Figure(
            "accuracy-over-tasks",
            partial(figures.accuracy_curves, results),
            "Average accuracy over the tasks seen so far, after every task",
        )
        files = {"curves.csv": csv(figures.curve_table(results))}
        parts.append(Section("Accuracy over tasks", [curves], files))
    parts.append(
        Section(
            "Accuracy on every task after every task",
            heatmaps(results, tasks),
            {"matrices.csv": csv(matrix_table(summaries))},
        )
    )
    if layers is not None:
        picture = Figure(
            "layers", partial(figures.layer_movement, layers), "What the layers do, task by task"
        )
        parts.append(Section("What the layers do", [picture], {"layers.csv": csv(layers)}))
    matrices = [matrix(summary, tasks) for summary in summaries]
    note = Text("In per cent; the last column is the mean over the tasks seen so far.")
    return [
        *parts,
        Section("Accuracy in numbers", [note, *matrices], folded=True),
        Section("Single runs", [_single_runs(runs, by_seed)], {"runs.csv": csv(by_seed)}, True),
        Section("Settings", _settings(runs, methods), folded=True),
    ]


def leaderboard(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """Every score of every method over its seeds; see `figures.summary_table`.

    Raises:
        DataError: tables do not fit together.
    """
    from vcl_radial.reporting import figures

    return figures.summary_table(_by_seed(runs, results_table(runs)))


def _by_seed(runs: Sequence[FinishedRun], results: pd.DataFrame) -> pd.DataFrame:
    """Every score and the cost of every run."""
    from vcl_radial.reporting.figures.tables import seed_table

    multi_head = runs[0].spec.stream.get("heads", "multi") == "multi"
    return seed_table(results, runs_costs(runs), multi_head=multi_head)


def _against(results: pd.DataFrame, methods: Sequence[str]) -> Section:
    """Compare the other methods with the first."""
    from vcl_radial.reporting import figures
    from vcl_radial.reporting.figures.differences import difference_table

    reference = methods[0]
    differences = figures.paired_differences(results, reference)
    blocks: list[Block] = []
    if not differences.empty:
        note = (
            f"Average accuracy minus that of {reference}, paired by seed. p is that of the exact "
            "two-sided sign-flip test, by Holm's correction over all rows; fewer than six seeds "
            "have none. The effect size d_z is the mean of the differences over their standard "
            "deviation."
        )
        blocks += [Text(note), difference_table(differences)]
    not_compared = sorted(set(methods[1:]) - set(differences["method"]))
    if not_compared:
        note = f"Fewer than two seeds in common with {reference}, so no comparison: "
        blocks.append(Text(f"{note}{', '.join(not_compared)}."))
    if len(methods) == 1:
        blocks.append(Text("There is no other method to compare with."))
    return Section(f"Against {reference}", blocks, {"differences.csv": figures.to_csv(differences)})


def _single_runs(runs: Sequence[FinishedRun], by_seed: pd.DataFrame) -> Table:
    """Every score of every run, without empty columns, and the run's folder."""
    from vcl_radial.reporting.figures.tables import column, printed, shown

    folders: Mapping[tuple[str, int], str] = {
        (run.method, run.spec.seed): "/".join(run.path.parts[-3:]) for run in runs
    }
    scores = shown(by_seed)
    rows = [
        [
            run["method"],
            str(run["seed"]),
            *(Cell(printed(name, float(run[name])), float(run[name])) for name in scores),
            folders[run["method"], run["seed"]],
        ]
        for run in by_seed.to_dict("records")
    ]
    columns: list[Column | str] = [
        Column("method", is_text=True),
        "seed",
        *map(column, scores),
        Column("folder", is_text=True),
    ]
    return Table(columns, rows)


def _settings(runs: Sequence[FinishedRun], methods: Sequence[str]) -> list[Block]:
    """The resolved spec of each method's runs, without the seed."""
    specs = {run.method: run.spec for run in reversed(runs)}
    blocks: list[Block] = []
    for method in methods:
        table = specs[method].model_dump(exclude={"seed"}, exclude_none=True, exclude_unset=True)
        blocks += [Text(method), Text(tomli_w.dumps(table), style="code")]
    return blocks
