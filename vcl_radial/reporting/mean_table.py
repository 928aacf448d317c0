"""Tables of means: a cell shows a mean with its spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pandas as pd

from vcl_radial.metrics import METRICS
from vcl_radial.reporting.blocks import Cell, Column, Table, number, with_spread


class Value(NamedTuple):
    """A mean with its spread: a standard error or a standard deviation; nan where unknown."""

    mean: float
    spread: float = math.nan


@dataclass(frozen=True)
class Values:
    """A column of a table of means.

    Attributes:
        heading: heading of the column.
        by_row: the values by the keys of rows.
        decimals: function that returns the number of printed decimals in a row.
        published: whether they are a paper's.
        better: which values are better.
        aside: whether a terminal omits the column.
        within: the standard errors within runs that are shown beside the others, by the keys.
    """

    heading: str
    by_row: Mapping[str, Value]
    decimals: Callable[[str], int] = lambda row: 2
    published: bool = False
    better: Literal["higher", "lower"] | None = None
    aside: bool = False
    within: Mapping[str, float] = field(default_factory=dict)

    def cell(self, row: str) -> Cell:
        """The cell of a row: `mean ± spread (error within runs)`, or a dash without a value."""
        mean, spread = self.by_row.get(row, Value(math.nan))
        text = with_spread(mean, spread, self.decimals(row))
        if not math.isnan(mean) and not math.isnan(inside := self.within.get(row, math.nan)):
            text += f" ({number(inside, self.decimals(row))})"
        return Cell(text, mean, published=self.published)


def mean_table(
    names: Sequence[str],
    rows: Mapping[str, Sequence[Cell | str]],
    columns: Sequence[Values],
    title: str = "",
) -> Table:
    """A table of `mean ± spread`; published values are in italics, missing values are dashes.

    Args:
        names: headings of the texts.
        rows: the texts of each row, by its key.
        columns: the other columns.
        title: title of the table.
    """
    heads = [Column(name, is_text=True) for name in names]
    heads += [Column(c.heading, better=c.better, aside=c.aside) for c in columns]
    body = [[*texts, *(c.cell(key) for c in columns)] for key, texts in rows.items()]
    return Table(heads, body, title)


def score_column(
    heading: str,
    groups: Mapping[str, pd.DataFrame],
    where: Mapping[str, object],
    *,
    decimals: int = 1,
    within: bool = True,
    better: Literal["higher", "lower"] | None = None,
    aside: bool = False,
) -> Values:
    """The column of a score.

    Args:
        heading: heading of the column.
        groups: rows of `scores.means` by the keys of the table's rows.
        where: the values that identify the score, such as `{"metric": "auc", "referred": 0.1}`.
        decimals: decimals of all numbers.
        within: whether the standard error within runs is shown beside that over runs; it is always
            shown for a single run.
        better: which values are better.
        aside: whether a terminal omits the column.
    """
    by_row, inside = {}, {}
    for key, means in groups.items():
        is_score = pd.concat([means[name] == value for name, value in where.items()], axis=1)
        scores = means[is_score.all(axis=1)]
        if not scores.empty:
            row = scores.iloc[0]
            by_row[key] = Value(row["mean"], row["standard_error"])
            if within or math.isnan(row["standard_error"]):
                inside[key] = row.get("error_within", math.nan)
    return Values(heading, by_row, lambda row: decimals, better=better, aside=aside, within=inside)


def metric_column(name: str, groups: Mapping[str, pd.DataFrame], *, within: bool = True) -> Values:
    """The column of a declared metric; see `score_column`."""
    metric = METRICS[name]
    return score_column(
        metric.column,
        groups,
        {"metric": name},
        decimals=metric.decimals,
        within=within,
        better=metric.better,
    )
