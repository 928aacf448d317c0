"""Write a leaderboard: methods x benchmarks, from the finished runs of several folders."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure as Picture

from vcl_radial.config import outside
from vcl_radial.errors import UserError, VclRadialError, visible
from vcl_radial.metrics import holm, mean_and_standard_error, sign_flip_test
from vcl_radial.metrics.ranks import average_ranks
from vcl_radial.metrics.seeds import FEWEST_SEEDS, MOST_SEEDS
from vcl_radial.metrics.verdicts import LEVEL
from vcl_radial.reporting import figures, manifest
from vcl_radial.reporting.blocks import (
    Cell,
    Column,
    Figure,
    Report,
    Section,
    Table,
    Text,
    number,
    with_spread,
)
from vcl_radial.reporting.figures.method_dots import method_dots
from vcl_radial.reporting.figures.names import benchmark_label
from vcl_radial.reporting.files import write_files, write_page
from vcl_radial.reporting.gather import gather, notices
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.latex import latex
from vcl_radial.reporting.provenance import behind
from vcl_radial.reporting.scores import is_sequence, runs_table, scores_table, without_avalanche
from vcl_radial.runs import catalogue
from vcl_radial.runs.folder import SPEC, check_page
from vcl_radial.runs.planning import plan
from vcl_radial.runs.track import FinishedRun

ALWAYS = ("naive", "frozen-body", "l2", "joint")
"""The methods that a benchmark needs, so that its other rows can be judged."""

SCORE = "average_accuracy"
NAME = "leaderboard"


def write_leaderboard(folders: Sequence[Path], to: Path, command: str | None = None) -> None:
    """Write the leaderboard of all task sequences below folders, as one page and as files.

    Args:
        folders: folders of runs, of reports with evidence, or of entries.
        to: the folder of the leaderboard.
        command: the command line that makes it.

    Raises:
        UserError: no folder has a sequence of tasks that was scored on test data, or the folder of
            the leaderboard holds files of others, or a file cannot be written.
    """
    page = to / "index.html"
    check_page(page, [], MARK)
    found, passed_over = gather(*folders)
    runs = [run for run in found if run.spec.evaluate_on == "test" and is_sequence_of_tasks(run)]
    if not runs:
        raise UserError("holds no task sequence that was scored on test data", folders[0])
    if others := len(found) - len(runs):
        passed_over.append(f"{others} runs that are no task sequence scored on test data")
    for line in passed_over:
        print(f"passed over: {visible(line)}", file=sys.stderr)
    report = report_of(runs)
    names = [*report.sections[0].files, "summary.md", "details.md", page.name]
    manifest.claim(to, NAME, folders[0], [*names, *(f"{NAME}{end}" for end in figures.ENDINGS)])
    drawn = write_files(report, to, benchmark=NAME, runs=folders[0])
    facts = [("command", [command])] if command else []
    title = "Leaderboard"
    write_page(page, [drawn], title=title, facts=facts, passed_over=passed_over)


def report_of(runs: Sequence[FinishedRun]) -> Report:
    """The leaderboard of runs: accuracy and ranks, then every score of each benchmark."""
    scores = without_avalanche(scores_table(runs))
    by_run = figures.seed_table(scores, runs_table(runs))
    summary = figures.summary_table(by_run)
    table, ranked = accuracy_table(by_run)
    compared = len(_compared(_tables(by_run)))
    note = (
        "Average accuracy over all tasks at the end of training (%), mean ± standard error over "
        f"seeds. Rank: mean over the benchmarks of several methods ({compared}) of a method's rank "
        "by its mean, with a 95 % interval over the seeds that all ranked methods share "
        "(bootstrap); only methods of all these benchmarks are ranked. Marked: not shown to be "
        f"worse than the best of the column (exact sign-flip test of at least {FEWEST_SEEDS} seeds "
        f"in pairs, p ≥ {LEVEL:g} by Holm's correction over the column). Settings says which runs "
        "have the shipped ones."
    )
    lines = [*_without_references(by_run), *_without_seeds(by_run)]
    missing = [Text(line, style="notice") for line in lines]
    picture = Figure(
        NAME, partial(_picture, summary, ranked), "Accuracy of each method on each benchmark"
    )
    files = {
        "leaderboard.csv": figures.to_csv(summary),
        "leaderboard.tex": latex(table),
        "runs.csv": figures.to_csv(by_run),
    }
    boards = [
        Section(benchmark_label(str(name)), [figures.board(rows)])
        for name, rows in summary.groupby("benchmark", sort=False)
    ]
    return Report(
        "Leaderboard",
        [Section("", [table, Text(note), *missing, picture], files), *boards, _settings(runs)],
        behind([run.environment for run in runs], seeds=[run.spec.seed for run in runs]),
        notices(runs),
    )


def accuracy_table(by_run: pd.DataFrame) -> tuple[Table, list[str]]:
    """The table of methods x benchmarks, and the methods in its order: the best rank first.

    Args:
        by_run: a table of `figures.seed_table`.
    """
    tables = _tables(by_run)
    ranks = average_ranks(_compared(tables))
    order = [*ranks, *(m for m in by_run["method"].unique() if m not in ranks)]
    best = {name: _not_worse(values) for name, values in tables.items()}
    columns = [Column("method", is_text=True), Column("rank", better="lower")]
    columns += [Column(benchmark_label(name), better="higher") for name in tables]
    rows: list[list[Cell | str]] = []
    for method in order:
        rank = ranks.get(method)
        has_interval = rank is not None and not math.isnan(rank.low)
        interval = f" ({number(rank.low)} to {number(rank.high)})" if rank and has_interval else ""
        cells: list[Cell | str] = [
            method,
            Cell("–") if rank is None else Cell(f"{number(rank.mean)}{interval}", rank.mean),
        ]
        for name, values in tables.items():
            mean, error = mean_and_standard_error(values.get(method, pd.Series()).dropna())
            cells.append(Cell(with_spread(mean, error, 1), mean, method in best[name]))
        rows.append(cells)
    return Table(columns, rows, sorted_by="rank"), order


def _tables(by_run: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By benchmark, the final accuracy of every seed and method, `[seeds, methods]`."""
    return {
        str(name): rows.pivot(index="seed", columns="method", values=SCORE)
        for name, rows in by_run.groupby("benchmark", sort=False)
    }


def _compared(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The benchmarks of several methods; of a single one, such as an update, nothing is ranked."""
    return {name: values for name, values in tables.items() if values.shape[1] > 1}


def _not_worse(values: pd.DataFrame) -> set[str]:
    """The best method and those not shown to be worse, by Holm's correction; empty untested."""
    best = values.mean().idxmax()
    differences = values.drop(columns=best).rsub(values[best], axis="index")
    tested = {
        str(name): column.dropna()
        for name, column in differences.items()
        if FEWEST_SEEDS <= column.count() <= MOST_SEEDS
    }
    if not tested:
        return set()
    p = holm([sign_flip_test([*column]) for column in tested.values()])
    return {str(best), *(m for m, value in zip(tested, p, strict=True) if value >= LEVEL)}


def _without_references(by_run: pd.DataFrame) -> list[str]:
    """Lines on benchmarks that lack a method of `ALWAYS`."""
    lines = []
    for name, rows in by_run.groupby("benchmark", sort=False):
        if missing := [method for method in ALWAYS if method not in set(rows["method"])]:
            lines.append(f"{name} has no runs of {', '.join(missing)}.")
    return lines


def _without_seeds(by_run: pd.DataFrame) -> list[str]:
    """Lines on benchmarks whose methods do not have the same seeds."""
    lines = []
    for name, values in _tables(by_run).items():
        counts = values.notna().sum()
        few = [f"{m} has {n}" for m, n in counts.items() if n < len(values)]
        if few:
            lines.append(
                f"The means on {name} are over different seeds: of its {len(values)} seeds, "
                f"{', '.join(few)}."
            )
    return lines


def _settings(runs: Sequence[FinishedRun]) -> Section:
    """Whose settings the runs of each method have, on each benchmark."""
    origins: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        origins.setdefault((run.method, run.benchmark), set()).add(origin_of(run))
    rows = [[*key, ", ".join(sorted(found))] for key, found in sorted(origins.items())]
    note = (
        "Shipped: the recipe of the method with what the benchmark sets for all methods. Tuned: "
        "the settings that a search on validation data selected for the benchmark (`run --tuned`)."
    )
    heads = [Column(name, is_text=True) for name in ("method", "benchmark", "settings")]
    return Section("Settings", [Text(note), Table(heads, rows)], folded=True)


def origin_of(run: FinishedRun) -> str:
    """Whose settings a run has: "shipped", "tuned" or "own"."""
    spec = run.spec
    named = (("benchmark", spec.benchmark), ("method", spec.method))
    if any(name not in catalogue.names(kind, run.track.name) for kind, name in named):  # type: ignore[arg-type]
        return "own"
    with outside.named_by(run.path / SPEC):
        for origin in ("shipped", "tuned"):
            with suppress(VclRadialError):  # the method was not tuned, or the spec names code
                (planned, *_) = plan(
                    spec.benchmark, [spec.method], [spec.seed], tuned=origin == "tuned"
                )
                made = run.track.validated({**spec.model_dump(exclude_unset=True), "method": ""})
                if planned.digest() == made.digest():
                    return origin
    return "own"


def _picture(summary: pd.DataFrame, methods: Sequence[str]) -> Picture:
    panels = {
        benchmark_label(str(name)): {
            row["method"]: (row[SCORE], row[f"{SCORE}_se"]) for row in rows.to_dict("records")
        }
        for name, rows in summary.groupby("benchmark", sort=False)
    }
    return method_dots(panels, methods, "Accuracy of the final network", "average accuracy (%)")


def is_sequence_of_tasks(run: FinishedRun) -> bool:
    """Whether a run has the accuracies of a sequence of tasks."""
    scores = without_avalanche(run.track.scores(run).assign(run=0, part="test"))
    rows = scores[scores["metric"] == "accuracy"] if "task" in scores else scores.iloc[:0]
    return "task" in scores and is_sequence(rows)
