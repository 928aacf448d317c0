"""Draw the accuracy over the tasks seen so far, after every task: a line and a band per method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vcl_radial.reporting.figures.drawing import Curve, line, near_100, sheet
from vcl_radial.reporting.figures.names import benchmark_label, method_label
from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, seeds_text
from vcl_radial.reporting.figures.panels import side_legend
from vcl_radial.reporting.figures.style import method_styles

_WIDTH, _HEIGHT = 4.2, 2.9  # of the axes, in inches
_LOOK: Any = {"markersize": 4.0, "markeredgewidth": 0.0, "clip_on": False}
_STRETCHED_TICKS = (0.0, 50.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5, 100.0)


def accuracy_curves(results: pd.DataFrame, metric: str = "accuracy") -> Figure:
    """Draw the average accuracy over the tasks seen so far, after every task.

    The band is the mean over the seeds plus and minus its standard error. A joint run, which sees
    all tasks at once, is a horizontal line. If some methods are above 97 % and others below 90 %,
    the axis is stretched towards 100 %, and a note says so.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        metric: The metric to show, such as "accuracy" or "AUC", in per cent.

    Raises:
        DataError: The results hold more than one benchmark.
    """
    summaries = all_over_seeds(results, metric=metric)
    T = max(summary.tasks for summary in summaries)
    notes = ["average over the tasks seen so far", seeds_text(summaries)]
    names = [s.method for s in summaries]
    styles = method_styles(names)
    curves = [_curve(summary) for summary in summaries]
    title = benchmark_label(summaries[0].benchmark)
    with sheet(title, notes, [""], per_line=1, width=_WIDTH, height=_HEIGHT, grid="y") as (
        figure,
        (axes,),
    ):
        for summary, curve in zip(summaries, curves, strict=True):
            style = styles[summary.method]
            look = {"linestyle": (0, (4, 3))} if summary.joint else style.look
            label = method_label(summary.method)
            line(axes, curve, style.colour, label=label, **look, **_LOOK)
        if _scale(axes, curves):
            notes.append("axis stretched towards 100 %")
        axes.set_xlim(1 - 0.06 * max(T - 1, 1), T + 0.06 * max(T - 1, 1))
        axes.set_xticks(range(1, T + 1, max(1, T // 10)))
        axes.set_xlabel("after training task")
        axes.set_ylabel(f"{metric} (%)")
        side_legend(axes, [*map(method_label, names)])
    return figure


def _curve(summary: AccuracyOverSeeds) -> Curve:
    """The line of a method, with a band if there are several seeds."""
    shown = [0, -1] if summary.joint else slice(None)
    rows = [-1, -1] if summary.joint else slice(None)
    tasks = np.arange(1, summary.tasks + 1)[shown].tolist()
    mean, error = summary.seen_mean[rows], np.nan_to_num(summary.seen_error)[rows]
    if np.isnan(summary.seen_error).all():
        return Curve("", summary.method, tasks, mean.tolist())
    low, high = (mean - error).tolist(), np.minimum(mean + error, 100).tolist()
    return Curve("", summary.method, tasks, mean.tolist(), low, high)


def _scale(axes: Axes, curves: Sequence[Curve]) -> bool:
    """Stretch the axis if values are near 100 and far apart; return whether it is stretched."""
    shown = np.concatenate([part for c in curves for part in (c.low or c.y, c.high or c.y)])
    low, high = np.nanmin(shown), np.nanmax(shown)
    stretched = bool(np.nanmedian(shown) > 90 and high > 97 and high - low > 5)
    if stretched:
        near_100(axes, "y")
        axes.set_yticks(_STRETCHED_TICKS)
        below, above = (np.array(_STRETCHED_TICKS) <= low), (np.array(_STRETCHED_TICKS) >= high)
        axes.set_ylim(_STRETCHED_TICKS[below.sum() - 1], _STRETCHED_TICKS[-above.sum()])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6))
        bottom, top = axes.get_ylim()
        axes.set_ylim(max(bottom, 0), min(top, 100))
    axes.yaxis.set_major_formatter("{x:g}")
    return stretched
