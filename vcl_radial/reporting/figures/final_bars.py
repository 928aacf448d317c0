"""Draw the accuracy of the final network on every task as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, seeds_text
from vcl_radial.reporting.figures.panels import (
    balanced_per_line,
    finish,
    label_columns,
    panel_title,
    panels,
    task_names,
)
from vcl_radial.reporting.figures.style import (
    FAINT,
    INK,
    SMALL_SIZE,
    MethodStyle,
    house_style,
    method_styles,
)
from vcl_radial.runs.sections import number

_HEIGHT = 1.7
_MOST_LABELLED = 12  # with more tasks the bars are too thin for numbers above them


def final_bars(results: pd.DataFrame, *, tasks: Sequence[str] | None = None) -> Figure:
    """Draw the accuracy of the final network, with a panel per method and a bar per task.

    The view of Farquhar et al., "Radial Bayesian neural networks" (AISTATS 2020), Figs. 5 and 10.
    The dotted line is the average accuracy, the paler bar the task trained last.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        tasks: Names of the tasks; by default their numbers.

    Raises:
        DataError: The results hold more than one benchmark.
    """
    summaries = all_over_seeds(results)
    T = max(summary.tasks for summary in summaries)
    pitch = 0.4 if T <= 6 else 0.34 if T <= _MOST_LABELLED else min(0.2, 20.0 / T)
    width = (T + 0.4) * pitch
    per_line = balanced_per_line(len(summaries), max(2, int(9.0 / (width + 0.75))))
    names = task_names(tasks, T)
    styles = method_styles([summary.method for summary in summaries])
    with house_style():
        figure, grid = panels(len(summaries), per_line)
        for place, (axes, summary) in enumerate(zip(grid, summaries, strict=True)):
            _bars(axes, summary, styles[summary.method])
            panel_title(axes, summary.method, width)
            axes.set_xlim(0.3, T + 0.7)
            axes.tick_params(axis="x", length=0)
            label_columns(axes, range(1, T + 1), names, pitch)
            if place % per_line == 0:
                axes.set_ylabel("accuracy (%)")
            if place + per_line >= len(summaries):
                axes.set_xlabel("task", labelpad=3)
        notes = _explanation(summaries)
        finish(figure, (width, _HEIGHT), summaries[0].benchmark, notes)
    return figure


def _explanation(summaries: Sequence[AccuracyOverSeeds]) -> list[str]:
    parts = ["final network, " + seeds_text(summaries), "dotted: average over tasks"]
    if any(summary.tasks > 1 and not summary.joint for summary in summaries):
        parts.append("pale: newest task")
    return parts


def _paler(colour: str) -> tuple[float, float, float]:
    red, green, blue = (1.0 - 0.45 * (1.0 - component) for component in to_rgb(colour))
    return red, green, blue


def _bars(axes: Axes, summary: AccuracyOverSeeds, style: MethodStyle) -> None:
    """Draw the bars of one method; bar j is at position j."""
    T = summary.tasks
    mean, error = summary.mean[-1], np.nan_to_num(summary.error[-1])
    average = float(summary.seen_mean[-1])
    labelled = T <= _MOST_LABELLED
    top = 110.0 if labelled else 101.0  # room above full bars
    colours = [to_rgb(style.colour)] * T
    if T > 1 and not summary.joint:
        colours[-1] = _paler(style.colour)
    tasks = np.arange(1, T + 1)
    axes.bar(tasks, mean, width=0.72, color=colours)
    if error.any():
        axes.errorbar(
            tasks, mean, error, color=INK, fmt="none", elinewidth=0.8, capsize=1.8, capthick=0.8
        )
    for j, height in zip(tasks, mean, strict=True):
        if labelled and not np.isnan(height):
            axes.annotate(
                number(height),
                (j, height + error[j - 1]),
                (0.0, 2.0),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=SMALL_SIZE - 1.0,
                zorder=4,
                bbox={"boxstyle": "square,pad=0.08", "facecolor": "white", "linewidth": 0.0},
            )
    axes.axhline(average, color=INK, linestyle=(0, (1, 1.5)), linewidth=1.0, zorder=3)
    axes.annotate(
        number(average),
        (1.0, average),
        (3.0, 0.0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=SMALL_SIZE,
        fontweight="bold",
    )
    axes.set_ylim(0.0, top)
    axes.set_yticks(np.linspace(0.0, 100.0, 6))
    axes.spines["left"].set_bounds(0.0, 100.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
