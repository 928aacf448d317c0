"""Published figures beside ours: the cells of a paper's table, a table of both, a comparison."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, NamedTuple

from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell


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
        decimals: function that returns the number of printed decimals in a row.
        published: whether they are a paper's.
        better: which values are better.
    """

    heading: str
    by_row: Mapping[str, Value]
    decimals: Callable[[str], int] = lambda row: 2
    published: bool = False
    better: Literal["higher", "lower"] | None = None


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


def value_table(
    first: str, rows: Sequence[str], columns: Sequence[Values], title: str = ""
) -> Table:
    """A table of `mean ± spread`; published values are in italics, missing values are dashes.

    Args:
        first: heading of the names of rows.
        rows: names of the rows.
        columns: the other columns.
        title: a short title.
    """

    def cell(column: Values, row: str) -> Cell:
        if row not in column.by_row:
            return Cell("–")
        return mean_cell(*column.by_row[row], column.decimals(row), published=column.published)

    heads = [Column(column.heading, better=column.better) for column in columns]
    body: list[list[Cell | str]] = [[row, *(cell(c, row) for c in columns)] for row in rows]
    return Table([Column(first, is_text=True), *heads], body, title)


def not_below(ours: Values, theirs: Values) -> dict[str, bool]:
    """Whether our mean, rounded as the published one, is at least as high: by common rows."""
    return {
        row: round(value.mean, theirs.decimals(row)) >= theirs.by_row[row].mean
        for row, value in ours.by_row.items()
        if row in theirs.by_row
    }
