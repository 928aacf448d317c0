"""The pictures of the regression track."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.drawing import Curve, sheet
from vcl_radial.reporting.figures.lines import line_figure, mean_curves
from vcl_radial.reporting.figures.names import data_label, method_label
from vcl_radial.reporting.figures.panels import balanced_per_line
from vcl_radial.reporting.figures.style import (
    FAINT,
    QUIET_INK,
    SMALL_SIZE,
    MethodStyle,
    method_styles,
)
from vcl_radial.reporting.mean_table import Value
from vcl_radial.tracks.regression.published import COLUMNS, theirs
from vcl_radial.tracks.regression.tables import names, ours

_SHOWN = (
    ("farquhar2020", "mfvi", "2020 a"),
    ("farquhar2020", "radial", "2020 a"),
    ("farquhar2020", "dropout", "2020 a"),
    ("oh2020", "rdp", "2020 b"),
)
"""Published columns that are drawn below our methods."""

_LINE = 0.165
"""Height of a row in inches."""


def log_likelihoods(means: pd.DataFrame) -> Figure:
    """Draw a panel for each set, a row for each method: mean and standard error over splits.

    Published figures stand below a line; figures beyond the range are printed at the edge.

    Args:
        means: means over splits, of `vcl_radial.reporting.scores.means`.
    """
    sets, methods = names(means), [str(name) for name in means["method"].unique()]
    styles = method_styles(methods)
    scores = {
        method_label(method): (ours(means, method, "log_likelihood").by_row, styles[method])
        for method in methods
    }
    grey = MethodStyle(QUIET_INK, "|")
    published = {
        f"{COLUMNS[column]}, {tag}": (theirs(source, column, "log_likelihood").by_row, grey)
        for source, column, tag in _SHOWN
    }
    rows = scores | {k: v for k, v in published.items() if not v[0].keys().isdisjoint(sets)}
    notes = ["mean ± standard error over splits, nats per test row", "further right is better"]
    if len(rows) > len(scores):  # not named by their colour: a method may also be grey
        sources = "a: Farquhar et al., Table 2, b: Oh et al., Table 1"
        notes.append(f"below the line: published ({sources})")
    per_line = balanced_per_line(len(sets), 3)
    with sheet(
        "Test log-likelihood",
        notes,
        [*map(data_label, sets)],
        per_line=per_line,
        width=1.75 if per_line > 1 else 3.2,  # the header needs room
        height=_LINE * len(rows) + 0.1,
        grid="x",
    ) as (figure, panels):
        for axes, name in zip(panels, sets, strict=True):
            values = [row.get(name, Value(math.nan)) for row, _ in rows.values()]
            axes.set_xlim(_range(values, len(scores)))
            _rows(axes, values, [style for _, style in rows.values()])
            if len(rows) > len(scores):
                axes.axhline(len(scores) - 0.5, color=FAINT, linewidth=0.6)
            axes.set_yticks(range(len(rows)), [*rows])
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.tick_params(axis="y", length=0)
            axes.locator_params(axis="x", nbins=4)
    return figure


def _rows(axes: Axes, values: Sequence[Value], styles: Sequence[MethodStyle]) -> None:
    low, high = axes.get_xlim()
    for row, ((mean, error), style) in enumerate(zip(values, styles, strict=True)):
        if low <= mean <= high:
            axes.errorbar(
                mean,
                row,
                xerr=np.nan_to_num(error),
                color=style.colour,
                marker=style.marker,
                markersize=6 if style.marker == "|" else 4,
                elinewidth=1.0,
                capsize=1.8,
            )
        elif not math.isnan(mean):
            left = mean < low
            axes.annotate(
                (f"◂ {mean:.2f}" if left else f"{mean:.2f} ▸").replace("-", "−"),
                (0.02 if left else 0.98, row),
                xycoords=("axes fraction", "data"),
                ha="left" if left else "right",
                va="center",
                fontsize=SMALL_SIZE,
                color=style.colour,
            )


def _range(values: Sequence[Value], of_ours: int) -> tuple[float, float]:
    """The range of the axis: the middle half of ours, which come first, and the values near it."""
    means = np.array([mean for mean, _ in values[:of_ours] if not math.isnan(mean)])
    if not len(means):  # all diverged
        return 0.0, 1.0
    lower, middle, upper = np.quantile(means, [0.25, 0.5, 0.75])
    reach = max(3 * (upper - lower), 0.15)
    near = [(m, np.nan_to_num(e)) for m, e in values if abs(m - middle) <= reach]
    low, high = min(m - e for m, e in near), max(m + e for m, e in near)
    margin = 0.12 * max(high - low, 0.05)
    return low - margin, high + margin


def over_slices(scores: pd.DataFrame) -> Figure:
    """Draw a panel for each set: log-likelihood on all test rows after each slice; dashed: at once.

    Args:
        scores: the table of scores, in which `after` is 0 for all rows at once; methods that have
            no slices of a set are not drawn there.
    """
    shown = scores[scores["metric"] == "log_likelihood"]
    last = int(shown["after"].max())
    in_sequence = mean_curves(shown[shown["after"] > 0])
    drawn = {(curve.panel, curve.name) for curve in in_sequence}
    at_once = [c for c in mean_curves(shown[shown["after"] == 0]) if (c.panel, c.name) in drawn]
    return line_figure(
        "Test log-likelihood in sequence",
        [
            "on all test rows, after each slice of the training rows",
            "mean ± standard error over splits",
            "dashed: the posterior of all rows at once",
        ],
        in_sequence,
        ("slices seen", "nats per test row"),
        references=[Curve(c.panel, c.name, [1, last], [c.y[0]] * 2) for c in at_once],
        scale=lambda axes, curves: axes.set_xticks(curves[0].x),
    )
