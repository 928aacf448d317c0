"""Tidy results, their means over splits, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.blocks import Cell, Column, Table, mean_cell, number
from vcl_radial.reporting.figures.tables import cell_of
from vcl_radial.reporting.figures.tables import column as score_column
from vcl_radial.tracks.regression.published import COLUMNS as COLUMN_NAMES
from vcl_radial.tracks.regression.published import (
    GAUSSIAN,
    RADIAL,
    RDP,
    RDP_NOISE_PRIOR,
    SOURCES,
    best_log_likelihood,
    cell,
    published,
)

COLUMNS = ["set", "method", "setting", "split", "slice", "metric", "value"]
"""Columns of a tidy table."""

COMPARED = (
    ("farquhar2020", GAUSSIAN, "mfvi"),
    ("farquhar2020", RADIAL, "radial"),
    ("farquhar2020", "mc-dropout", "dropout"),
    ("oh2020", GAUSSIAN, "vi"),
    ("oh2020", "mc-dropout", "dropout"),
    ("oh2020", RDP, "rdp"),
    ("oh2020", RDP_NOISE_PRIOR, "rdp"),
)
"""Sources, our methods, and the published columns beside them."""

DECIMALS = {"log_likelihood": 2, "rmse": 2}
_HEADINGS = {"log_likelihood": "Test log-likelihood (nats)", "rmse": "Test RMSE"}
_SMALL_UNITS = {"naval": 4, "kin8nm": 3}
"""Sets whose RMSE needs more decimals."""


def summary(tidy: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard error over splits.

    Returns:
        The columns `set, method, slice, metric, mean, standard_error, splits`, in the order of
        first appearance.
    """
    rows: list[dict[str, Any]] = []
    keys = ["set", "method", "slice", "metric"]
    for key, group in tidy.groupby(keys, sort=False):
        mean, error = mean_and_standard_error(group["value"])
        entry: dict[str, Any] = dict(zip(keys, key, strict=True))
        rows.append(entry | {"mean": mean, "standard_error": error, "splits": len(group)})
    return pd.DataFrame(rows)


def _table(header: Sequence[str], body: Sequence[Sequence[Cell | str]], title: str = "") -> Table:
    """A table whose first column is text."""
    return Table([Column(header[0], is_text=True), *header[1:]], body, title)


def score_table(means: pd.DataFrame, metric: str) -> Table:
    """Our scores, with a row for each set and a column for each method."""
    sets, methods = _names(means, "set"), _names(means, "method")
    scores = _lookup(means, metric)
    body: list[list[Cell | str]] = [
        [name, *(_ours(scores, name, method, metric) for method in methods)] for name in sets
    ]
    return _table(["set", *methods], body, _HEADINGS[metric])


def _compared(means: pd.DataFrame, source: str) -> list[tuple[str, str]]:
    """Our methods that were run, with the columns of a source beside them."""
    methods = _names(means, "method")
    return [(ours, column) for of, ours, column in COMPARED if of == source and ours in methods]


def beside(means: pd.DataFrame, source: str, metric: str) -> Table | None:
    """Our methods beside columns of a published table; None if nothing can be compared.

    Args:
        means: the table of `summary`.
        source: a name of `SOURCES`.
        metric: the metric to compare.
    """
    scores = _lookup(means, metric)
    sets = [name for name in _names(means, "set") if any(p.set == name for p in published())]
    pairs = _compared(means, source)
    pairs = [pair for pair in pairs if any((name, pair[0]) in scores for name in sets)]
    if not sets or not pairs:
        return None
    body: list[list[Cell | str]] = []
    for name in sets:
        row: list[Cell | str] = [name]
        for method, column in pairs:
            theirs = cell(source, name, column, metric)
            row.append(_ours(scores, name, method, metric))
            row.append(
                "–"
                if theirs is None
                else mean_cell(theirs.mean, theirs.standard_error, published=True)
            )
        body.append(row)
    header = ["set"]
    for method, column in pairs:
        header += [f"{method} ({COLUMN_NAMES[column]}): ours", "theirs"]
    heading = _HEADINGS[metric]
    return _table(header, body, f"{SOURCES[source]}: {heading[0].lower()}{heading[1:]}")


def verdicts(means: pd.DataFrame) -> list[str]:
    """Results of the comparison of log-likelihoods, in sentences."""
    scores = _lookup(means, "log_likelihood")
    sentences = []
    for method, source, column in (
        (GAUSSIAN, "farquhar2020", "mfvi"),
        (RADIAL, "farquhar2020", "radial"),
        (GAUSSIAN, "farquhar2020", "dropout"),
        (RADIAL, "farquhar2020", "dropout"),
        ("mc-dropout", "farquhar2020", "dropout"),
        (GAUSSIAN, "oh2020", "vi"),
        (RDP, "oh2020", "rdp"),
        (RDP_NOISE_PRIOR, "oh2020", "rdp"),
    ):
        if column not in {beside for _, beside in _compared(means, source)}:
            continue  # no table shows it
        better: list[str] = []
        worse: list[str] = []
        for name in _names(means, "set"):
            theirs, ours = cell(source, name, column, "log_likelihood"), scores.get((name, method))
            if theirs is not None and ours is not None:
                # Published figures have two decimals.
                (worse if round(ours[0], 2) < theirs.mean else better).append(name)
        if better or worse:
            which = f": worse on {', '.join(worse)}" if worse else ""
            sentences.append(
                f"{method} against {COLUMN_NAMES[column]} of {SOURCES[source]}: at least as high "
                f"on {len(better)} of {len(better) + len(worse)} sets{which}"
            )
    return sentences


def impossible_pairs(means: pd.DataFrame) -> list[str]:
    """Published pairs that no Gaussian noise of one size can give, in sentences.

    Only sets that were run and columns beside a method are considered.
    """
    sentences = []
    sets = _names(means, "set")
    columns = {(source, column) for source in SOURCES for _, column in _compared(means, source)}
    for entry in published():
        if entry.set not in sets or (entry.source, entry.column) not in columns:
            continue
        rmse = cell(entry.source, entry.set, entry.column, "rmse")
        if entry.metric != "log_likelihood" or rmse is None or rmse.mean <= 0.005:
            continue
        bound = best_log_likelihood(rmse.mean - 0.005)  # it may have been rounded up
        if entry.mean > bound + 3 * entry.standard_error + 0.005:
            sentences.append(
                f"{entry.set}, {COLUMN_NAMES[entry.column]} of {SOURCES[entry.source]}: "
                f"a log-likelihood of {entry.mean:.2f} beside an RMSE of {rmse.mean:.2f}, with "
                f"which one Gaussian noise reaches {bound:.2f} at most"
            )
    return sentences


def implied_errors(means: pd.DataFrame, source: str, column: str, method: str) -> Table | None:
    """The largest RMSE at which one Gaussian noise reaches a published figure, beside ours."""
    ours = _lookup(means, "rmse")
    body: list[list[Cell | str]] = []
    for name in _names(means, "set"):
        theirs = cell(source, name, column, "log_likelihood")
        if theirs is not None and (name, method) in ours:
            largest = math.exp(best_log_likelihood(1.0) - theirs.mean)
            places = decimals(name, "rmse")
            mine = _ours(ours, name, method, "rmse")
            body.append([name, number(theirs.mean, 2), number(largest, places), mine])
    if not body:
        return None
    header = [
        "set",
        f"log-likelihood of {COLUMN_NAMES[column]}",
        "needs an RMSE of at most",
        f"{method}: RMSE",
    ]
    return _table(header, body)


def differences(tidy: pd.DataFrame, method: str, reference: str) -> Table | None:
    """One method minus another, paired by split; None if one of them is missing.

    A row for each set has mean and standard error of the differences of both metrics, and the
    number of splits on which the first method is better.
    """
    body: list[list[Cell | str]] = []
    for name in _names(tidy, "set"):
        cells: list[Cell | str] = []
        for metric in DECIMALS:
            rows = tidy[(tidy["set"] == name) & (tidy["metric"] == metric)]
            wide = rows.pivot_table(index="split", columns="method", values="value")
            if method not in wide or reference not in wide:
                break
            gap = (wide[method] - wide[reference]).dropna()
            better = int((gap > 0).sum() if metric == "log_likelihood" else (gap < 0).sum())
            mean, error = mean_and_standard_error(gap)
            cells += [
                mean_cell(mean, error, decimals(name, metric) + 1),
                f"{better} of {len(gap)}",
            ]
        else:
            body.append([name, *cells])
    if not body:
        return None
    header = ["set", "log-likelihood (nats)", "splits higher", "RMSE", "splits lower"]
    return _table(header, body)


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
        if 0 not in wide or last not in wide:
            continue
        both = wide[[0, last]].dropna()
        entry: dict[str, Any] = {"set": name, "method": method, "metric": metric}
        for label, values in (
            ("at_once", both[0]),
            ("in_sequence", both[last]),
            ("gap", both[last] - both[0]),
        ):
            entry[label], entry[f"{label}_error"] = mean_and_standard_error(values)
        entry["splits"] = len(both)
        if "carried_bytes" in group:
            entry["carried_bytes"] = group["carried_bytes"].mean()
        rows.append(entry)
    return pd.DataFrame(rows)


def gap_table(gaps: pd.DataFrame, metric: str) -> Table:
    """The gaps of a metric."""
    rows = gaps[gaps["metric"] == metric]
    body: list[list[Cell | str]] = []
    header: list[Column | str] = [
        Column("set, method", is_text=True),
        *("all rows at once", "in sequence", "gap"),
    ]
    if carried := "carried_bytes" in gaps:
        header.append(score_column("carried_bytes"))
    for row in rows.to_dict("records"):
        places = decimals(row["set"], metric) + (metric == "log_likelihood")
        body.append(
            [
                f"{row['set']}, {row['method']}",
                mean_cell(row["at_once"], row["at_once_error"], places),
                mean_cell(row["in_sequence"], row["in_sequence_error"], places),
                mean_cell(row["gap"], row["gap_error"], places),
                *([cell_of("carried_bytes", row["carried_bytes"])] if carried else []),
            ]
        )
    return Table(header, body, _HEADINGS[metric])


def decimals(name: str, metric: str) -> int:
    """Number of printed decimals."""
    return _SMALL_UNITS.get(name, 2) if metric == "rmse" else DECIMALS[metric]


def _ours(
    scores: Mapping[tuple[str, str], tuple[float, float]], name: str, method: str, metric: str
) -> Cell:
    return mean_cell(*scores.get((name, method), (math.nan, math.nan)), decimals(name, metric))


def _lookup(means: pd.DataFrame, metric: str) -> dict[tuple[str, str], tuple[float, float]]:
    rows = means[means["metric"] == metric]
    return {
        (str(row["set"]), str(row["method"])): (float(row["mean"]), float(row["standard_error"]))
        for row in rows.to_dict("records")
    }


def _names(table: pd.DataFrame, column: str) -> list[str]:
    return [str(name) for name in table[column].unique()]
