"""Tidy results, their means over splits, and tables of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell
from vcl_radial.reporting.figures.differences import corrected, paired
from vcl_radial.reporting.figures.tables import cell_of
from vcl_radial.reporting.figures.tables import column as score_column
from vcl_radial.reporting.published import Value, Values, value_table

COLUMNS = ["set", "method", "setting", "split", "slice", "metric", "value"]
"""Columns of a tidy table."""

HEADINGS = {"log_likelihood": "test log-likelihood (nats)", "rmse": "test RMSE"}

OVERLAP = 1 / 9
"""Test rows over training rows of a split."""

_SMALL_UNITS = {"naval": 4, "kin8nm": 3}
"""Sets whose RMSE needs more decimals."""


def summary(tidy: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over splits.

    Returns:
        The columns `set, method, slice, metric, mean, standard_error, splits`, in the order of
        first appearance.
    """
    keys = ["set", "method", "slice", "metric"]
    rows = [
        (*key, *mean_and_standard_error(values), len(values))
        for key, values in tidy.groupby(keys, sort=False)["value"]
    ]
    return pd.DataFrame(rows, columns=[*keys, "mean", "standard_error", "splits"])


def ours(means: pd.DataFrame, method: str, metric: str, heading: str = "") -> Values:
    """The means of a method, by set.

    Args:
        means: the table of `summary`.
        method: the method.
        metric: the metric.
        heading: heading of the column; the method by default.
    """
    rows = means[(means["method"] == method) & (means["metric"] == metric)]
    cells = zip(rows["set"], rows["mean"], rows["standard_error"], strict=True)
    by_set = {name: Value(*cell) for name, *cell in cells}
    return Values(heading or method, by_set, partial(decimals, metric=metric))


def score_table(means: pd.DataFrame, metric: str) -> Table:
    """Our scores, with a row for each set and a column for each method."""
    columns = [ours(means, method, metric) for method in means["method"].unique()]
    return value_table("set", names(means), columns, HEADINGS[metric])


def differences(tidy: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """One method minus another, paired by split, by set and metric; see `differences.corrected`."""
    parts = []
    for key, rows in tidy.groupby(["set", "metric"], sort=False):
        name, metric = map(str, key)
        by_split = rows.set_index(["method", "split"])["value"].dropna()
        part = paired(dict(by_split.items()), [method], reference, OVERLAP)
        parts.append(
            part.assign(set=name, score=HEADINGS[metric], decimals=decimals(name, metric) + 1)
        )
    return corrected(pd.concat(parts, ignore_index=True))


def gaps(tidy: pd.DataFrame) -> pd.DataFrame:
    """A sequence's last slice minus all rows at once, paired by split.

    Args:
        tidy: a tidy table with slice 0 for all rows at once.

    Returns:
        The columns `set, method, metric, at_once, at_once_error, in_sequence, in_sequence_error,
        gap, gap_error, splits`, and the mean `carried_bytes` if known.
    """
    rows = []
    last = tidy["slice"].max()
    for (name, method, metric), group in tidy.groupby(["set", "method", "metric"], sort=False):
        wide = group.pivot_table(index="split", columns="slice", values="value")
        if not {0, last} <= {*wide}:
            continue
        both = wide[[0, last]].dropna()
        scores = {"at_once": both[0], "in_sequence": both[last], "gap": both[last] - both[0]}
        row: dict[str, Any] = {"set": name, "method": method, "metric": metric}
        for label, values in scores.items():
            row[label], row[f"{label}_error"] = mean_and_standard_error(values)
        row["splits"] = len(both)
        if "carried_bytes" in group:
            row["carried_bytes"] = group["carried_bytes"].mean()
        rows.append(row)
    return pd.DataFrame(rows)


def gap_table(gaps: pd.DataFrame, metric: str) -> Table:
    """The gaps of a metric."""
    headings = {"at_once": "all rows at once", "in_sequence": "in sequence", "gap": "gap"}
    carried = "carried_bytes" in gaps
    body: list[list[Cell | str]] = []
    for row in gaps[gaps["metric"] == metric].to_dict("records"):
        places = decimals(row["set"], metric) + (metric == "log_likelihood")
        cells = [mean_cell(row[name], row[f"{name}_error"], places) for name in headings]
        cells += [cell_of("carried_bytes", row["carried_bytes"])] if carried else []
        body.append([f"{row['set']}, {row['method']}", *cells])
    heads: list[Column | str] = [Column("set, method", is_text=True), *headings.values()]
    heads += [score_column("carried_bytes")] if carried else []
    return Table(heads, body, HEADINGS[metric])


def decimals(name: str, metric: str) -> int:
    """Number of printed decimals."""
    return _SMALL_UNITS.get(name, 2) if metric == "rmse" else 2


def names(table: pd.DataFrame) -> list[str]:
    """The sets, in the order of first appearance."""
    return [str(name) for name in table["set"].unique()]
