"""Tables of scores on sets."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from vcl_radial.metrics import METRICS, mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell
from vcl_radial.reporting.figures.differences import corrected, paired
from vcl_radial.reporting.figures.tables import cell_of
from vcl_radial.reporting.figures.tables import column as score_column
from vcl_radial.reporting.mean_table import Value, Values, mean_table
from vcl_radial.reporting.scores import at_the_end

OVERLAP = 1 / 9
"""Test rows over training rows of a split."""

INTERVALS = tuple(name for name, metric in METRICS.items() if metric.of == "intervals")
"""The metrics of intervals, in the order of tables."""

_SMALL_UNITS = {"naval": 4, "kin8nm": 3}
"""Sets whose RMSE needs more decimals."""


def ours(means: pd.DataFrame, method: str, metric: str, heading: str = "") -> Values:
    """The means of a method, by set.

    Args:
        means: means over splits, of `vcl_radial.reporting.scores.means`.
        method: the method.
        metric: the metric.
        heading: heading of the column; the method by default.
    """
    rows = means[(means["method"] == method) & (means["metric"] == metric)]
    cells = zip(rows["part"], rows["mean"], rows["standard_error"], strict=True)
    by_set = {name: Value(*cell) for name, *cell in cells}
    return Values(heading or method, by_set, partial(decimals, metric=metric))


def score_table(means: pd.DataFrame, metric: str) -> Table:
    """Our scores, with a row for each set and a column for each method."""
    columns = [ours(means, method, metric) for method in means["method"].unique()]
    rows = {name: [name] for name in names(means)}
    return mean_table(["set"], rows, columns, METRICS[metric].heading)


def differences(scores: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """One method minus another, paired by split, by set and metric; see `differences.corrected`."""
    tables = []
    for key, rows in scores.groupby(["part", "metric"], sort=False):
        name, metric = map(str, key)
        by_split = rows.set_index(["method", "seed"])["value"].dropna()
        table = paired(dict(by_split.items()), [method], reference, OVERLAP)
        places = decimals(name, metric) + 1
        tables.append(table.assign(set=name, score=METRICS[metric].heading, decimals=places))
    return corrected(pd.concat(tables, ignore_index=True))


def gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """A sequence's last slice minus all rows at once, paired by split.

    Args:
        scores: the table of scores, in which `after` is 0 for all rows at once, with the
            `carried_bytes` of runs if they are known.

    Returns:
        The columns `set, method, metric, at_once, at_once_error, in_sequence, in_sequence_error,
        gap, gap_error, splits`, and the mean `carried_bytes`.
    """
    rows = []
    last = scores["after"].max()
    for (name, method, metric), group in scores.groupby(["part", "method", "metric"], sort=False):
        wide = group.pivot_table(index="seed", columns="after", values="value")
        if not {0, last} <= {*wide}:
            continue
        both = wide[[0, last]].dropna()
        columns = {"at_once": both[0], "in_sequence": both[last], "gap": both[last] - both[0]}
        row: dict[str, Any] = {"set": name, "method": method, "metric": metric}
        for label, values in columns.items():
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
    return Table(heads, body, METRICS[metric].heading)


def interval_table(scores: pd.DataFrame) -> Table:
    """Scores of intervals after the last slice, with a row for each set and method."""
    ends = at_the_end(scores)
    in_slices = ends["after"].gt(0).any()
    body: list[list[Cell | str]] = []
    for (name, method, after), group in ends.groupby(["part", "method", "after"], sort=False):
        by_metric = {str(m): rows["value"] for m, rows in group.groupby("metric", sort=False)}
        cells = [
            mean_cell(*mean_and_standard_error(by_metric[m]), decimals(str(name), m))
            for m in INTERVALS
        ]
        learnt = ["in sequence" if after else "all rows at once"] if in_slices else []
        body.append([", ".join([str(name), str(method), *learnt]), *cells])
    heads = [METRICS[metric].heading for metric in INTERVALS]
    return Table([Column("set, method", is_text=True), *heads], body)


def decimals(name: str, metric: str) -> int:
    """Number of printed decimals."""
    return _SMALL_UNITS.get(name, 2) if metric == "rmse" else METRICS[metric].decimals


def names(table: pd.DataFrame) -> list[str]:
    """The sets, in the order of first appearance."""
    return [str(name) for name in table["part"].unique()]


def metrics(table: pd.DataFrame) -> list[str]:
    """The metrics of a table that are declared, in the order of their declaration."""
    return [name for name in METRICS if (table["metric"] == name).any()]
