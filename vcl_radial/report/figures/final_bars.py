"""Accuracy of the final network on every task, as bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from vcl_radial.report.figures.layout import (
    Grid,
    balanced_per_line,
    fill,
    header_height,
    label_depth,
    slant_labels,
    task_names,
    text_height,
    text_width,
    wrap,
)
from vcl_radial.report.figures.over_seeds import (
    AccuracyOverSeeds,
    all_over_seeds,
    number,
    seeds_text,
)
from vcl_radial.report.figures.style import (
    FAINT,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    MethodStyle,
    house_style,
    method_styles,
)

_HEIGHT = 1.7
_MOST_LABELLED = 12  # with more tasks the bars are too thin for numbers above them


def final_bars(
    results: pd.DataFrame,
    *,
    methods: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    baseline: float = 0.0,
) -> Figure:
    """One panel per method, one bar per task: the accuracy of the final network.

    The view of Farquhar et al., "Radial Bayesian neural networks" (AISTATS 2020), Figs. 5 and 10.
    The dotted line is the average accuracy, the paler bar the task trained last.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        methods: The methods to draw, in order; by default all, as they first appear.
        tasks: Names of the tasks; by default their numbers.
        baseline: Accuracy in per cent at which the bars start, for instance the chance level. The
            figure says so where it is not 0.

    Returns:
        The figure.

    Raises:
        DataError: The results do not hold a method, or more than one benchmark.
    """
    summaries = all_over_seeds(results, methods)
    T = max(summary.tasks for summary in summaries)
    pitch = 0.4 if T <= 6 else 0.34 if T <= _MOST_LABELLED else 0.2
    width = (T + 0.4) * pitch
    per_line = balanced_per_line(len(summaries), max(2, int(9.0 / (width + 0.75))))
    names = task_names(tasks, T)
    slanted = any(text_width(name, SMALL_SIZE) > 0.95 * pitch for name in names)

    titles = [wrap(summary.method, width, TEXT_SIZE, "bold") for summary in summaries]
    grid_width = max(per_line * (width + 0.75), 3.4)
    notes = fill(_explanation(summaries, baseline), grid_width, TEXT_SIZE)
    grid = Grid(
        panels=len(summaries),
        per_line=per_line,
        width=width,
        height=_HEIGHT,
        left=0.75,
        above=text_height(max(map(len, titles)), TEXT_SIZE) + 0.06,
        below=label_depth(names, slanted) + 0.25,
        right=0.5,
        header=header_height(len(notes)) + 0.1,
    )
    styles = method_styles([summary.method for summary in summaries])
    with house_style():
        figure = grid.figure()
        for panel, summary in enumerate(summaries):
            axes = grid.axes(figure, panel)
            _bars(axes, summary, styles[summary.method], baseline)
            axes.set_title(
                "\n".join(titles[panel]), fontsize=TEXT_SIZE, fontweight="bold", loc="left", pad=4
            )
            axes.set_xlim(0.3, T + 0.7)
            axes.set_xticks(range(1, T + 1), names)
            axes.tick_params(axis="x", length=0)
            if slanted:
                slant_labels(axes)
            if grid.is_first_of_line(panel):
                axes.set_ylabel("accuracy (%)")
            if grid.is_lowest(panel):
                axes.set_xlabel("task", labelpad=3)
        grid.write_header(figure, summaries[0].benchmark, notes)
    return figure


def _explanation(summaries: Sequence[AccuracyOverSeeds], baseline: float) -> list[str]:
    parts = ["final network, " + seeds_text(summaries), "dotted: average over tasks"]
    if any(summary.tasks > 1 and not summary.joint for summary in summaries):
        parts.append("pale: newest task")
    if baseline != 0.0:
        parts.append(f"bars start at {baseline:g} %")
    return parts


def _paler(colour: str) -> tuple[float, float, float]:
    red, green, blue = (1.0 - 0.45 * (1.0 - component) for component in to_rgb(colour))
    return red, green, blue


def _bars(axes: Axes, summary: AccuracyOverSeeds, style: MethodStyle, baseline: float) -> None:
    """Draws the bars of one method; bar j stands at j."""
    T = summary.tasks
    mean, error = summary.mean[-1], np.nan_to_num(summary.error[-1])
    average = float(summary.seen_mean[-1])
    labelled = T <= _MOST_LABELLED
    top = baseline + (1.1 if labelled else 1.01) * (100.0 - baseline)  # room above full bars
    for j in range(1, T + 1):
        height, spread = float(mean[j - 1]), float(error[j - 1])
        if np.isnan(height):
            continue
        newest = j == T > 1 and not summary.joint
        axes.bar(
            j,
            height - baseline,
            bottom=baseline,
            width=0.72,
            color=_paler(style.colour) if newest else style.colour,
        )
        if spread > 0.0:
            axes.errorbar(j, height, spread, color=INK, elinewidth=0.8, capsize=1.8, capthick=0.8)
        if labelled:
            axes.annotate(
                number(height),
                (j, max(height, baseline) + spread),
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
    axes.set_ylim(baseline, top)
    axes.set_yticks(np.linspace(baseline, 100.0, 6))
    axes.spines["left"].set_bounds(baseline, 100.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
