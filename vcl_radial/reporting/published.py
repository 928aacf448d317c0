"""Published figures beside ours: the cells of a paper's table, and a comparison."""

from __future__ import annotations

import csv
from importlib.resources import files

from vcl_radial.reporting.mean_table import Value, Values


def published_rows(package: str) -> list[dict[str, str]]:
    """The rows of a package's `published.csv`, as they are printed."""
    text = files(package).joinpath("published.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def published_values(package: str) -> dict[tuple[str, ...], Value]:
    """The means of a package's `published.csv`.

    Returns:
        The mean and its spread, which are the last two columns, by the texts of the others.
    """
    rows = (row.values() for row in published_rows(package))
    return {tuple(key): Value(float(mean), float(spread)) for *key, mean, spread in rows}


def not_below(ours: Values, theirs: Values) -> dict[str, bool]:
    """Whether our mean, rounded as the published one, is at least as high: by common rows."""
    return {
        row: round(value.mean, theirs.decimals(row)) >= theirs.by_row[row].mean
        for row, value in ours.by_row.items()
        if row in theirs.by_row
    }
