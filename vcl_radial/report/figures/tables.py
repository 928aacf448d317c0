"""The table of a comparison: one row per method, mean and standard error over the seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from textwrap import fill

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.metrics import mean_and_standard_error, summary
from vcl_radial.report.figures.marks import best_methods, legend
from vcl_radial.report.figures.over_seeds import check_columns, number
from vcl_radial.report.figures.scores import COSTS, SCORES


def seed_table(
    results: pd.DataFrame, costs: pd.DataFrame | None = None, *, multi_head: bool = False
) -> pd.DataFrame:
    """Every score of every run.

    Args:
        results: Tidy tables of many finished runs, with `benchmark, method, seed`.
        costs: What the runs cost: `benchmark, method, seed` and the columns of `COSTS`; nan where
            it is not known.
        multi_head: Whether each task has a head of its own; then there is no forward transfer.

    Returns:
        One row per run, with `benchmark, method, seed` and the names of `metrics.summary`, and
        with costs those of `COSTS`. Methods come in the order in which they first appear.
        Undefined scores are nan.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    check_columns(results)
    keys = ["benchmark", "method", "seed"]
    rows: list[dict[str, object]] = []
    for (benchmark, method), runs in results.groupby(keys[:2], sort=False):
        for seed, run in runs.groupby("seed", sort=True):
            row: dict[str, object] = {"benchmark": benchmark, "method": method, "seed": seed}
            try:
                rows.append(row | summary(run, multi_head=multi_head))
            except DataError as error:
                raise DataError(f"{benchmark}, {method}, seed {seed}: {error}") from error
    scores = [name for name in SCORES if name not in COSTS]
    table = pd.DataFrame(rows, columns=[*keys, *scores]).astype(dict.fromkeys(scores, float))
    if costs is None:
        return table
    return table.merge(costs[[*keys, *COSTS]], on=keys, how="left", validate="one_to_one")


def summary_table(
    results: pd.DataFrame, costs: pd.DataFrame | None = None, *, multi_head: bool = False
) -> pd.DataFrame:
    """Every score of every method, over its seeds.

    Args:
        results: Tidy tables of many finished runs, with `benchmark, method, seed`.
        costs: As in `seed_table`.
        multi_head: As in `seed_table`.

    Returns:
        One row per benchmark and method, in the order in which they first appear, with the
        columns `benchmark, method, seeds` and, for each score of `seed_table`, the mean under
        that name and its standard error under `<name>_se`. Undefined scores are nan. The last
        column, `best`, names the scores in which no method is shown to be better
        (`marks.best_methods`), with spaces between them.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    return summarised(seed_table(results, costs, multi_head=multi_head))


def summarised(by_seed: pd.DataFrame) -> pd.DataFrame:
    """`summary_table` of what `seed_table` returned."""
    names = [name for name in SCORES if name in by_seed]
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


def to_markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, with cells such as `98.73 ± 0.12`; marked ones are bold.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break: the table, and where there are several methods, a line
        below it that says what is marked. The benchmark is left out where there is only one, and
        so are scores that no method has.
    """
    rows, marked = _cells(table)
    cells = [
        [f"**{cell}**" if is_best else cell for cell, is_best in zip(*pair, strict=True)]
        for pair in zip(rows, marked, strict=True)
    ]
    line = legend(table, "**Bold**")
    return markdown(cells) + (f"\n{heading_text(line)}\n" if line else "")


def markdown(
    rows: Sequence[Sequence[str]], words: Collection[str] = ("benchmark", "method")
) -> str:
    """Rows of text as a Markdown table, the first of them its header.

    Args:
        rows: The cells; what Markdown would take for its own is escaped.
        words: Headings of columns of words; the others are set to the right.

    Returns:
        Text that ends with a line break.
    """
    header, *body = [[_as_markdown(cell) for cell in row] for row in rows]
    rule = ["---" if heading in words else "---:" for heading in rows[0]]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rule, *body])


def to_text(table: pd.DataFrame) -> str:
    """The table for a terminal, in aligned columns; marked cells have a star.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break, with the columns and the last line of `to_markdown`.
    """
    rows, marked = _cells(table)
    stars = [any(column) for column in zip(*marked, strict=True)]
    rows = [
        [
            f"{cell} {'*' if is_best else ' '}" if star and i > 0 else cell
            for cell, is_best, star in zip(*triple, stars, strict=True)
        ]
        for i, triple in enumerate(zip(rows, marked, strict=True))
    ]
    numbers = _numeric_columns(rows[0])
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    rows.insert(1, ["─" * width for width in widths])
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        ]
        lines.append("  ".join(cells).rstrip() + "\n")
    line = legend(table, "*")
    return "".join(lines) + (fill(line, 100) + "\n" if line else "")


def to_csv(table: pd.DataFrame) -> str:
    """The table as comma-separated values in full precision; undefined scores are empty.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break.
    """
    return str(table.to_csv(index=False, lineterminator="\n"))


def printed(name: str, mean: float, error: float = math.nan) -> str:
    """A score as tables print it: `98.73 ± 0.12`, or without spread where there is none.

    Args:
        name: One of `SCORES`.
        mean: Its value, or its mean over seeds.
        error: The standard error of that mean.

    Returns:
        The text.
    """
    score = SCORES[name]
    text = (
        f"{mean:,.0f}" if score.counted and not math.isnan(mean) else number(mean, score.decimals)
    )
    if math.isnan(error) or (score.counted and error == 0.0):
        return text
    return f"{text} ± {number(error, score.decimals)}"


def heading_text(words: str) -> str:
    """Words outside a Markdown table, without what Markdown would take for HTML."""
    return words.replace("&", "&amp;").replace("<", "&lt;")


def _as_markdown(cell: str) -> str:
    return heading_text(cell).replace("|", "\\|")


def _cells(table: pd.DataFrame) -> tuple[list[list[str]], list[list[bool]]]:
    """Header and rows as they are printed, and which of their cells are marked as best."""
    names = ["benchmark"] if table["benchmark"].nunique() > 1 else []
    names += ["method", "seeds"]
    columns = [[name, *(str(value) for value in table[name])] for name in names]
    marks = [[False] * (len(table) + 1) for _ in names]
    for name, score in SCORES.items():
        if name in table and not table[name].isna().all():
            pairs = zip(table[name], table[f"{name}_se"], strict=True)
            columns.append([score.heading, *(printed(name, m, se) for m, se in pairs)])
            marks.append([False, *(name in best.split() for best in table["best"])])
    rows = [list(row) for row in zip(*columns, strict=True)]
    return rows, [list(row) for row in zip(*marks, strict=True)]


def _numeric_columns(header: list[str]) -> list[bool]:
    return [heading not in ("benchmark", "method") for heading in header]
