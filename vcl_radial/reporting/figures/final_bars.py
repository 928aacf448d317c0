"""Draw the accuracy of the final network on every task as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from vcl_radial.reporting.blocks import number
from vcl_radial.reporting.figures.drawing import sheet
from vcl_radial.reporting.figures.names import benchmark_label, method_label
from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, seeds_text
from vcl_radial.reporting.figures.panels import balanced_per_line, label_columns, task_names
from vcl_radial.reporting.figures.style import INK, SMALL_SIZE, method_styles

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
    methods = [summary.method for summary in summaries]
    styles = method_styles(methods)
    notes = ["final network, " + seeds_text(summaries), "dotted: average over tasks"]
    if any(summary.tasks > 1 and not summary.joint for summary in summaries):
        notes.append("pale: newest task")
    with sheet(
        benchmark_label(summaries[0].benchmark),
        notes,
        [*map(method_label, methods)],
        per_line=per_line,
        width=width,
        height=_HEIGHT,
        grid="y",
    ) as (figure, panels):
        for index, (axes, summary) in enumerate(zip(panels, summaries, strict=True)):
            _bars(axes, summary, styles[summary.method].colour)
            axes.set_xlim(0.3, T + 0.7)
            axes.tick_params(axis="x", length=0)
            label_columns(axes, range(1, T + 1), task_names(tasks, T), pitch)
            if index % per_line == 0:
                axes.set_ylabel("accuracy (%)")
            if index + per_line >= len(summaries):
                axes.set_xlabel("task", labelpad=3)
    return figure


def _bars(axes: Axes, summary: AccuracyOverSeeds, colour: str) -> None:
    """Draw the bars of one method; bar j is at position j."""
    T = summary.tasks
    mean, error = summary.mean[-1], np.nan_to_num(summary.error[-1])
    average = float(summary.seen_mean[-1])
    colours = [to_rgb(colour)] * T
    if T > 1 and not summary.joint:
        red, green, blue = (1.0 - 0.45 * (1.0 - component) for component in to_rgb(colour))
        colours[-1] = (red, green, blue)
    bars = axes.bar(
        np.arange(1, T + 1),
        mean,
        width=0.72,
        color=colours,
        yerr=error if error.any() else None,
        error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 1.8, "capthick": 0.8},
    )
    if T <= _MOST_LABELLED:
        axes.bar_label(
            bars,
            [number(height) for height in mean],
            padding=2.0,
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
    # Labels need room above full bars.
    axes.set_ylim(0.0, 110.0 if T <= _MOST_LABELLED else 101.0)
    axes.set_yticks(np.linspace(0.0, 100.0, 6))
    axes.spines["left"].set_bounds(0.0, 100.0)
