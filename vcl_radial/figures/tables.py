"""The table of a comparison: one row per method, mean and standard error over the seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.figures.over_seeds import check_columns, number
from vcl_radial.metrics import mean_and_standard_error, summary


@dataclass(frozen=True)
class _Column:
    """How a score is headed and printed; the arrow points to better."""

    heading: str
    decimals: int


_COLUMNS = {
    "average_accuracy": _Column("accuracy (%) ↑", 2),
    "forgetting": _Column("forgetting ↓", 2),
    "backward_transfer": _Column("BWT ↑", 2),
    "forward_transfer": _Column("FWT ↑", 2),
    "minimum_accuracy": _Column("min-ACC (%) ↑", 2),
    "recency_bias": _Column("recency bias (%) ↓", 2),
    "average_nll": _Column("NLL (nats) ↓", 3),
    "average_ece": _Column("ECE (%) ↓", 2),
}


def summary_table(results: pd.DataFrame) -> pd.DataFrame:
    """Every score of every method, over its seeds.

    Args:
        results: Tidy tables of many finished runs, with `benchmark, method, seed`.

    Returns:
        One row per benchmark and method, in the order in which they first appear, with the
        columns `benchmark, method, seeds` and, for each name of `metrics.summary`, the mean under
        that name and its standard error under `<name>_se`. Undefined scores are nan.

    Raises:
        DataError: A table is damaged or a run is not finished; the message names the run.
    """
    check_columns(results)
    rows: list[dict[str, object]] = []
    for (benchmark, method), runs in results.groupby(["benchmark", "method"], sort=False):
        scores = [
            _scores(f"{benchmark}, {method}, seed {seed}", run)
            for seed, run in runs.groupby("seed", sort=True)
        ]
        row: dict[str, object] = {"benchmark": benchmark, "method": method, "seeds": len(scores)}
        for name in _COLUMNS:
            defined = [value for score in scores if (value := score[name]) is not None]
            row[name], row[f"{name}_se"] = mean_and_standard_error(defined)
        rows.append(row)
    columns = [column for name in _COLUMNS for column in (name, f"{name}_se")]
    return pd.DataFrame(rows, columns=["benchmark", "method", "seeds", *columns])


def to_markdown(table: pd.DataFrame) -> str:
    """The table as Markdown, with cells such as `98.73 ± 0.12`.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break. The benchmark is left out where there is only one, and
        so are scores that no method has.
    """
    header, *body = [[cell.replace("|", "\\|") for cell in row] for row in _cells(table)]
    numbers = _numeric_columns(header)
    rule = ["---:" if is_number else "---" for is_number in numbers]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rule, *body])


def to_text(table: pd.DataFrame) -> str:
    """The table for a terminal, in aligned columns.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break, with the columns of `to_markdown`.
    """
    rows = _cells(table)
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
    return "".join(lines)


def to_csv(table: pd.DataFrame) -> str:
    """The table as comma-separated values in full precision; undefined scores are empty.

    Args:
        table: What `summary_table` returned.

    Returns:
        Text that ends with a line break.
    """
    return str(table.to_csv(index=False, lineterminator="\n"))


def _scores(run_name: str, run: pd.DataFrame) -> dict[str, float | None]:
    try:
        return summary(run)
    except DataError as error:
        raise DataError(f"{run_name}: {error}") from error


def _cells(table: pd.DataFrame) -> list[list[str]]:
    """Header and rows as they are printed."""
    names = ["benchmark"] if table["benchmark"].nunique() > 1 else []
    names += ["method", "seeds"]
    columns = [[name, *(str(value) for value in table[name])] for name in names]
    for name, column in _COLUMNS.items():
        means, errors = table[name], table[f"{name}_se"]
        if not means.isna().all():
            pairs = zip(means, errors, strict=True)
            columns.append([column.heading, *(_cell(m, se, column.decimals) for m, se in pairs)])
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(mean: float, error: float, decimals: int) -> str:
    if math.isnan(error):
        return number(mean, decimals)
    return f"{number(mean, decimals)} ± {number(error, decimals)}"


def _numeric_columns(header: list[str]) -> list[bool]:
    return [heading not in ("benchmark", "method") for heading in header]
