"""Published figures beside ours: the cells of a paper's table, a table of both, a comparison."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell

PRINTED = 2
"""Number of decimals of published values."""


class Value(NamedTuple):
    """A mean with its spread: a standard error or a standard deviation; nan where unknown."""

    mean: float
    spread: float = math.nan


@dataclass(frozen=True)
class Values:
    """A column of a table: values by the names of rows.

    Attributes:
        heading: heading of the column.
        by_row: the values.
        published: whether they are a paper's.
    """

    heading: str
    by_row: Mapping[str, Value]
    published: bool = False


def read_published(package: str) -> dict[tuple[str, ...], Value]:
    """The cells of a package's `published.csv`.

    Returns:
        The mean and its spread, which are the last two columns, by the texts of the others.
    """
    text = files(package).joinpath("published.csv").read_text(encoding="utf-8")
    _, *rows = csv.reader(text.splitlines())
    return {tuple(key): Value(float(mean), float(spread)) for *key, mean, spread in rows}


def value_table(
    first: str,
    rows: Sequence[str],
    columns: Sequence[Values],
    title: str = "",
    decimals: Callable[[str], int] = lambda row: 2,
) -> Table:
    """A table of `mean ± spread`; published values are in italics, missing values are dashes.

    Args:
        first: heading of the names of rows.
        rows: names of the rows.
        columns: the other columns.
        title: a short title.
        decimals: function that returns the number of decimals of our values in a row.
    """

    def cell(column: Values, row: str) -> Cell:
        value = column.by_row.get(row, Value(math.nan))
        digits = PRINTED if column.published else decimals(row)
        return mean_cell(*value, digits, published=column.published)

    heads = [Column(first, is_text=True), *(column.heading for column in columns)]
    return Table(heads, [[row, *(cell(c, row) for c in columns)] for row in rows], title)


def not_below(ours: Values, theirs: Values) -> dict[str, bool]:
    """Whether our mean, rounded as the published one, is at least as high: by common rows."""
    return {
        row: round(value.mean, PRINTED) >= theirs.by_row[row].mean
        for row, value in ours.by_row.items()
        if row in theirs.by_row
    }
