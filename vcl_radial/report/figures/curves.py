"""Accuracy over the tasks seen so far, after every task: one line with a band per method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.report.figures.accuracy_scale import AccuracyScale, accuracy_scale
from vcl_radial.report.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, seeds_text
from vcl_radial.report.figures.panels import finish, panels, side_legend
from vcl_radial.report.figures.style import DASHES, FAINT, LineLook, house_style, line_looks

_WIDTH, _HEIGHT = 4.2, 2.9  # of the axes, in inches


def accuracy_curves(results: pd.DataFrame, *, methods: Sequence[str] | None = None) -> Figure:
    """The average accuracy over the tasks seen so far, after every task.

    The band is the mean over the seeds plus and minus its standard error. A joint run, which sees
    all tasks at once, is a level line. Where some methods are above 97 % and others below 90 %,
    the axis is stretched towards 100 %, and says so.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        methods: The methods to draw, in order; by default all, as they first appear.

    Returns:
        The figure.

    Raises:
        DataError: The results do not hold a method, or more than one benchmark.
    """
    summaries = all_over_seeds(results, methods)
    T = max(summary.tasks for summary in summaries)
    scale = accuracy_scale(
        value for s in summaries for value in (*_low(s), *_high(s)) if not np.isnan(value)
    )
    notes = ["average over the tasks seen so far", seeds_text(summaries)]
    if scale.stretched:
        notes.append("axis stretched towards 100 %")
    names = [s.method for s in summaries]
    looks = line_looks(names)
    with house_style():
        figure, (axes,) = panels(1, 1)
        for summary in summaries:
            _curve(axes, summary, looks[summary.method], scale)
        _label(axes, scale, T)
        side_legend(axes, names)
        finish(figure, (_WIDTH, _HEIGHT), summaries[0].benchmark, notes)
    return figure


def _low(summary: AccuracyOverSeeds) -> list[float]:
    return list(summary.seen_mean - np.nan_to_num(summary.seen_error))


def _high(summary: AccuracyOverSeeds) -> list[float]:
    return list(summary.seen_mean + np.nan_to_num(summary.seen_error))


def _curve(axes: Axes, summary: AccuracyOverSeeds, look: LineLook, scale: AccuracyScale) -> None:
    """Draws a method; the axes' own unit is the place on the scale."""
    tasks = list(range(1, summary.tasks + 1))
    mean, low, high = (
        [scale.place(min(value, 100.0)) for value in values]
        for values in (summary.seen_mean, _low(summary), _high(summary))
    )
    style = look.style
    marker: str | None = style.marker
    if summary.joint:
        tasks, marker = [1, summary.tasks], None
        mean, low, high = [mean[-1]] * 2, [low[-1]] * 2, [high[-1]] * 2
    if not np.isnan(summary.seen_error).all():
        axes.fill_between(tasks, low, high, color=style.colour, alpha=0.16, linewidth=0.0)
    axes.plot(
        tasks,
        mean,
        color=style.colour,
        linestyle=(0, (4, 3)) if summary.joint else DASHES[look.dashes],
        linewidth=1.4,
        marker=marker,
        markersize=4.0,
        markeredgewidth=0.0,
        label=summary.method,
        clip_on=False,
    )


def _label(axes: Axes, scale: AccuracyScale, T: int) -> None:
    axes.set_xlim(1 - 0.06 * max(T - 1, 1), T + 0.06 * max(T - 1, 1))
    axes.set_ylim(0.0, 1.0)
    axes.set_xticks(range(1, T + 1, max(1, T // 10)))
    axes.set_xlabel("after training task")
    ticks = scale.ticks
    axes.set_yticks([scale.place(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_ylabel("accuracy (%)")
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    axes.tick_params(axis="x", length=2.5)


def curve_table(results: pd.DataFrame) -> pd.DataFrame:
    """What the curves show.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.

    Returns:
        One row per method and moment, with `benchmark, method, task_trained`, the mean over the
        seeds of the average accuracy over the tasks seen, and its standard error `mean, se`.
    """
    rows = [
        (s.benchmark, s.method, i, float(s.seen_mean[i - 1]), float(s.seen_error[i - 1]))
        for s in all_over_seeds(results)
        for i in s.rows
    ]
    return pd.DataFrame(rows, columns=["benchmark", "method", "task_trained", "mean", "se"])
