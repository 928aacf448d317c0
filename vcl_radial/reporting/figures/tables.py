"""The table of a comparison: one row per method, mean and standard error over the seeds."""

from __future__ import annotations

import math

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.metrics import METRICS, mean_and_standard_error, run_metrics, summary
from vcl_radial.reporting.blocks import Cell, Column, Table, number, size
from vcl_radial.reporting.figures.marks import best_methods, legend
from vcl_radial.reporting.figures.over_seeds import RUN_COLUMNS, check_columns


def seed_table(scores: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table of every score of every run over tasks.

    Args:
        scores: A table of scores with `benchmark, method, seed`.
        runs: Their runs, with `benchmark, method, seed` and costs; nan where one is not known.

    Returns:
        One row per run, with `benchmark, method, seed` and the names of `metrics.summary`, and the
        known costs. Methods come in the order in which they first appear. Undefined scores are nan;
        `average_sampling` has no column where no run knows it.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    check_columns(scores)
    keys = list(RUN_COLUMNS)
    rows: list[dict[str, object]] = []
    for (benchmark, method), of_method in scores.groupby(keys[:2], sort=False):
        for seed, run in of_method.groupby("seed", sort=True):
            row: dict[str, object] = {"benchmark": benchmark, "method": method, "seed": seed}
            try:
                rows.append(row | summary(run))
            except DataError as error:
                raise DataError(f"{benchmark}, {method}, seed {seed}: {error}") from error
    names = [name for name, metric in run_metrics().items() if metric.of != "cost"]
    table = pd.DataFrame(rows, columns=[*keys, *names]).astype(dict.fromkeys(names, float))
    if table["average_sampling"].isna().all():
        table = table.drop(columns="average_sampling")
    if runs is None:
        return table
    costs = runs[[name for name in run_metrics() if name in runs]].dropna(axis=1, how="all")
    return table.merge(runs[keys].join(costs), on=keys, how="left", validate="one_to_one")


def summary_table(by_seed: pd.DataFrame) -> pd.DataFrame:
    """The table of every score of every method, over its seeds.

    Args:
        by_seed: A table of `seed_table`.

    Returns:
        One row per benchmark and method, in the order in which they first appear, with the
        columns `benchmark, method, seeds` and, for each score of `seed_table`, the mean under
        that name and its standard error under `<name>_se`. Undefined scores are nan. The last
        column, `best`, names the scores in which no method is shown to be better
        (`marks.best_methods`), with spaces between them.
    """
    names = [name for name in run_metrics() if name in by_seed]
    rows: list[dict[str, object]] = []
    for benchmark, all_runs in by_seed.groupby("benchmark", sort=False):
        best = best_methods(all_runs)
        for method, runs in all_runs.groupby("method", sort=False):
            row: dict[str, object] = {"benchmark": benchmark, "method": method, "seeds": len(runs)}
            for name in names:
                row[name], row[f"{name}_se"] = mean_and_standard_error(runs[name].dropna())
            marked = [name for name in names if method in best.get(name, ())]
            rows.append(row | {"best": " ".join(marked)})
    columns = [column for name in names for column in (name, f"{name}_se")]
    return pd.DataFrame(rows, columns=["benchmark", "method", "seeds", *columns, "best"])


def board(table: pd.DataFrame) -> Table:
    """The leaderboard, with cells such as `98.73 ± 0.12` and marks at the best of each score.

    Args:
        table: A table with a row for each method, as `summary_table` returns it.

    Returns:
        The table. If there are several methods, a line below it explains the marks. The column of
        the benchmark is left out if there is only one benchmark, and so are scores that no method
        has.
    """
    labels = ["benchmark"] if table["benchmark"].nunique() > 1 else []
    labels.append("method")
    names = shown_scores(table)
    rows: list[list[Cell | str]] = [
        [
            *(str(row[name]) for name in labels),
            str(row["seeds"]),
            *(
                Cell(printed(n, row[n], row[f"{n}_se"]), row[n], n in row["best"].split())
                for n in names
            ),
        ]
        for row in table.to_dict("records")
    ]
    columns = [
        *(Column(name, is_text=True) for name in labels),
        Column("seeds", meaning="runs behind the numbers"),
        *(column(n) for n in names),
    ]
    line = legend(table)
    by = METRICS["average_accuracy"].column
    return Table(columns, rows, notes=[line] if line else [], sorted_by=by)


def shown_scores(table: pd.DataFrame) -> list[str]:
    """The scores that a table of `seed_table` or `summary_table` shows.

    A score is shown if a row has it. `average_sampling` is shown if sampling moves a prediction.
    """
    names = [name for name in run_metrics() if name in table and not table[name].isna().all()]
    still = "average_sampling" in names and not table["average_sampling"].gt(0).any()
    return [name for name in names if not still or name != "average_sampling"]


def column(name: str) -> Column:
    """The column of a metric of runs; a terminal omits costs."""
    metric = run_metrics()[name]
    aside = metric.of == "cost" or name == "average_sampling"
    return Column(metric.column, False, metric.meaning, metric.better, aside=aside)


def cell_of(name: str, mean: float, error: float = math.nan) -> Cell:
    """A metric of runs as tables print it; see `printed`."""
    return Cell(printed(name, mean, error), mean)


def to_csv(table: pd.DataFrame) -> str:
    """The table as comma-separated values in full precision; undefined scores are empty.

    Args:
        table: A table with a row for each method, as `summary_table` returns it.

    Returns:
        Text that ends with a line break.
    """
    return str(table.to_csv(index=False, lineterminator="\n"))


def printed(name: str, mean: float, error: float = math.nan) -> str:
    """Format a score for tables: `98.73 ± 0.12`, or without spread if there is none.

    Args:
        name: A metric of runs.
        mean: Its value, or its mean over seeds.
        error: The standard error of that mean.
    """
    score = run_metrics()[name]
    if score.in_bytes:
        text, spread = size(mean), size(error)
    elif score.counted and not math.isnan(mean):
        text, spread = f"{mean:,.0f}", number(error, score.decimals)
    else:
        text, spread = number(mean, score.decimals), number(error, score.decimals)
    if math.isnan(error) or (score.counted and error == 0.0):
        return text
    return f"{text} ± {spread}"
