"""Tables of means: a cell shows the mean of a score and its standard error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from vcl_radial.metrics import METRICS
from vcl_radial.reporting.blocks import Cell, Column, Table, number, with_spread


@dataclass(frozen=True)
class Score:
    """A column of a table of means.

    Attributes:
        column: the column.
        where: the values that identify the score, such as `{"metric": "auc", "referred": 0.1}`.
        decimals: decimals of all numbers.
        within: whether the standard error within runs is shown beside that over runs; it is always
            shown for a single run.
    """

    column: Column
    where: Mapping[str, object]
    decimals: int = 1
    within: bool = True


def of_metric(name: str, *, within: bool = True) -> Score:
    """The column of a declared metric."""
    metric = METRICS[name]
    column = Column(metric.column, better=metric.better)
    return Score(column, {"metric": name}, metric.decimals, within)


def mean_table(
    rows: Iterable[tuple[Sequence[Cell | str], pd.DataFrame]],
    names: Sequence[str],
    scores: Sequence[Score],
    title: str = "",
) -> Table:
    """A table with a row for each group of means.

    Args:
        rows: for each row its texts and rows of `scores.means`; None for a row without means.
        names: headings of the texts.
        scores: columns of scores.
        title: title of the table.
    """
    columns = [*(Column(name, is_text=True) for name in names), *(s.column for s in scores)]
    return Table(columns, [[*texts, *cells(means, scores)] for texts, means in rows], title)


def cells(means: pd.DataFrame, scores: Sequence[Score]) -> list[str]:
    """The scores of a row as texts; empty where the means lack one."""
    return [_cell(_chosen(means, s.where), s.decimals, s.within) for s in scores]


def _chosen(means: pd.DataFrame, where: Mapping[str, object]) -> pd.DataFrame:
    for name, value in where.items():
        means = means[means[name] == value]
    return means


def _cell(means: pd.DataFrame, decimals: int, within: bool) -> str:
    """Format the first row as `mean ± error over runs (error within runs)`; "" without a value."""
    if means.empty or math.isnan((row := means.iloc[0])["mean"]):
        return ""
    text = with_spread(row["mean"], row["standard_error"], decimals)
    inside = row.get("error_within", math.nan)
    if not math.isnan(inside) and (within or math.isnan(row["standard_error"])):
        text += f" ({number(inside, decimals)})"
    return text
