"""The pictures of the regression track."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from vcl_radial.reporting.figures.drawing import Curve
from vcl_radial.reporting.figures.lines import line_figure, mean_curves
from vcl_radial.reporting.figures.panels import balanced_per_line, finish, panel_title, panels
from vcl_radial.reporting.figures.style import (
    FAINT,
    QUIET_INK,
    SMALL_SIZE,
    MethodStyle,
    house_style,
    method_styles,
)
from vcl_radial.tracks.regression.published import COLUMNS, cell

_SHOWN = (
    ("farquhar2020", "mfvi", "2020 a"),
    ("farquhar2020", "radial", "2020 a"),
    ("farquhar2020", "dropout", "2020 a"),
    ("oh2020", "rdp", "2020 b"),
)
"""Published columns that are drawn below our methods."""

_WIDTH_ALONE = 3.2
"""Width in inches of a single panel, so that the header has room."""

_LINE = 0.165
"""Height of a row in inches."""


def log_likelihoods(means: pd.DataFrame) -> Figure:
    """Draw a panel for each set, a row for each method: mean and standard error over splits.

    Published figures stand below a line; figures beyond the range are printed at the edge.

    Args:
        means: a table of `vcl_radial.tracks.regression.tables.summary`.
    """
    scores = means[means["metric"] == "log_likelihood"]
    sets, methods = list(scores["set"].unique()), list(scores["method"].unique())
    styles = method_styles(methods)
    columns = [s for s in _SHOWN if any(cell(s[0], name, s[1], "log_likelihood") for name in sets)]
    rows = [*methods, *(f"{COLUMNS[column]}, {tag}" for _, column, tag in columns)]
    per_line = balanced_per_line(len(sets), 3)
    parts = ["mean ± standard error over splits, nats per test row", "further right is better"]
    if columns:  # not named by their colour: a method may also be grey
        sources = "a: Farquhar et al., Table 2, b: Oh et al., Table 1"
        parts.append(f"below the line: published ({sources})")
    width = 1.75 if per_line > 1 else _WIDTH_ALONE
    with house_style():
        figure, grid = panels(len(sets), per_line)
        for axes, name in zip(grid, sets, strict=True):
            table = scores[scores["set"] == name].set_index("method")
            ours = [
                (float(table["mean"].get(m, math.nan)), float(table["standard_error"].get(m, 0)))
                for m in methods
            ]
            theirs = [cell(source, name, column, "log_likelihood") for source, column, _ in columns]
            pairs = [(p.mean, p.standard_error) if p else (math.nan, 0.0) for p in theirs]
            _rows(axes, ours, pairs, [styles[m] for m in methods])
            panel_title(axes, name, width)
            axes.set_yticks(range(len(rows)), rows)
            axes.set_ylim(len(rows) - 0.4, -0.6)
        finish(figure, (width, _LINE * len(rows) + 0.1), "Test log-likelihood", parts)
    return figure


def _rows(
    axes: Axes,
    ours: Sequence[tuple[float, float]],
    theirs: Sequence[tuple[float, float]],
    styles: Sequence[MethodStyle],
) -> None:
    low, high = _range([*ours, *theirs], ours)
    axes.set_xlim(low, high)
    grey = MethodStyle(QUIET_INK, "|")
    for row, ((mean, error), style) in enumerate(
        zip([*ours, *theirs], [*styles, *(grey for _ in theirs)], strict=True)
    ):
        if math.isnan(mean):
            continue
        if not low <= mean <= high:
            left = mean < low
            axes.annotate(
                f"◂ {mean:.2f}" if left else f"{mean:.2f} ▸",
                (0.02 if left else 0.98, row),
                xycoords=("axes fraction", "data"),
                ha="left" if left else "right",
                va="center",
                fontsize=SMALL_SIZE,
                color=style.colour,
            )
            continue
        axes.errorbar(
            mean,
            row,
            xerr=0.0 if math.isnan(error) else error,
            color=style.colour,
            marker=style.marker,
            markersize=6 if style is grey else 4,
            elinewidth=1.0,
            capsize=1.8,
        )
    if theirs:
        axes.axhline(len(ours) - 0.5, color=FAINT, linewidth=0.6)
    axes.grid(axis="x", color=FAINT, linewidth=0.4)
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=4)


def _range(
    values: Sequence[tuple[float, float]], ours: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """The range of the axis: our middle half and the values near it."""
    means = np.array([mean for mean, _ in ours if not math.isnan(mean)])
    if not len(means):  # all diverged
        return 0.0, 1.0
    lower, middle, upper = np.quantile(means, [0.25, 0.5, 0.75])
    reach = max(3 * (upper - lower), 0.15)
    near = [(m, 0 if math.isnan(e) else e) for m, e in values if abs(m - middle) <= reach]
    low, high = min(m - e for m, e in near), max(m + e for m, e in near)
    margin = 0.12 * max(high - low, 0.05)
    return low - margin, high + margin


def over_slices(tidy: pd.DataFrame) -> Figure:
    """Draw a panel for each set: log-likelihood on all test rows after each slice; dashed: at once.

    Args:
        tidy: a tidy table with slice 0 for all rows at once.
    """
    scores = tidy[tidy["metric"] == "log_likelihood"]
    last = int(scores["slice"].max())
    at_once = mean_curves(scores[scores["slice"] == 0], "set", "slice")
    return line_figure(
        "Test log-likelihood in sequence",
        [
            "on all test rows, after each slice of the training rows",
            "mean ± standard error over splits",
            "dashed: the posterior of all rows at once",
        ],
        mean_curves(scores[scores["slice"] > 0], "set", "slice"),
        ("slices seen", "nats per test row"),
        references=[Curve(c.panel, c.name, [1, last], [c.y[0]] * 2) for c in at_once],
        scale=_symlog_below,
    )


def _symlog_below(axes: Axes, curves: Sequence[Curve]) -> None:
    """Use powers of ten on the axis for scores far below the final ones."""
    axes.set_xticks(curves[0].x)
    low, high = axes.get_ylim()
    if high - low > 20:
        axes.set_yscale("symlog", linthresh=5)
        # In digits: the default labels are formulas, which the style does not set.
        near = [-2, 0, 2, 5] if low > -1000 else [0]  # ticks near 0 overlap on a long axis
        axes.yaxis.set_major_locator(FixedLocator([*(-(10**k) for k in range(6, 0, -1)), *near]))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
