"""Accuracy on every task after every task: the matrix R, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vcl_radial.report.figures.layout import (
    Grid,
    balanced_per_line,
    fill,
    header_height,
    label_depth,
    label_reach,
    slant_labels,
    task_names,
    text_height,
    text_width,
    wrap,
)
from vcl_radial.report.figures.over_seeds import (
    AccuracyOverSeeds,
    accuracy_over_seeds,
    all_over_seeds,
    number,
    seeds_text,
)
from vcl_radial.report.figures.style import (
    FAINT,
    PALE,
    QUIET_INK,
    SMALL_SIZE,
    TEXT_SIZE,
    colour_map,
    house_style,
    text_colour,
)

_GAP = 0.3  # between the last task and the column of means, in cells
_MEAN = "mean of\ntasks seen"
_AHEAD = "hatched: task not trained yet"


@dataclass(frozen=True)
class _Cell:
    """Size of a cell in inches and of its text in points; without spread where it would not fit."""

    width: float
    height: float
    mean_size: float
    spread_size: float | None


def heatmap(
    results: pd.DataFrame,
    method: str,
    *,
    tasks: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Heatmap of one method: rows are moments of training, columns are tasks.

    Each cell holds the mean accuracy over the seeds and the standard error of that mean.
    Cells of tasks that were not trained yet are hatched and have no colour. The column at the
    right is the average accuracy over the tasks seen so far. A joint run has one row.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        method: The method to draw.
        tasks: Names of the tasks; by default their numbers.
        limits: Accuracies in per cent at the ends of the colour scale; by default 50 to 100, or
            0 to 100 as soon as a task that was trained scores below 50.

    Returns:
        The figure.

    Raises:
        DataError: The results do not hold the method, or more than one benchmark.
    """
    summary = accuracy_over_seeds(results, method)
    return _draw([summary], tasks, limits, title=summary.method, subtitle=summary.benchmark)


def heatmap_sheet(
    results: pd.DataFrame,
    *,
    methods: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Heatmaps of several methods side by side, with one colour scale.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        methods: The methods to draw, in order; by default all, as they first appear.
        tasks: Names of the tasks; by default their numbers.
        limits: Accuracies in per cent at the ends of the colour scale, as in `heatmap`.

    Returns:
        The figure.

    Raises:
        DataError: The results do not hold a method, or more than one benchmark.
    """
    summaries = all_over_seeds(results, methods)
    return _draw(summaries, tasks, limits, title=summaries[0].benchmark, subtitle=None)


def _draw(
    summaries: Sequence[AccuracyOverSeeds],
    tasks: Sequence[str] | None,
    limits: tuple[float, float] | None,
    title: str,
    subtitle: str | None,
) -> Figure:
    T = max(summary.tasks for summary in summaries)
    cell = _cell(T)
    scale = Normalize(*(limits or accuracy_limits(summaries)))
    sheet = subtitle is None
    width = (T + _GAP + 1) * cell.width
    per_line = balanced_per_line(len(summaries), 3 if T <= 6 else 2)
    names = task_names(tasks, T)
    slanted = any(text_width(name, SMALL_SIZE) > 0.92 * cell.width for name in names)

    titles = [wrap(s.method, width, TEXT_SIZE, "bold") if sheet else [] for s in summaries]
    span = max(per_line * (width + 0.5), 3.4)
    shown = seeds_text(summaries, with_spread=cell.spread_size is not None)
    notes = [subtitle] if subtitle else []
    rows = max(_rows_high(summary) for summary in summaries)
    notes += fill([shown, _AHEAD] if rows > 1 else [shown], span, TEXT_SIZE)
    grid = Grid(
        panels=len(summaries),
        per_line=per_line,
        width=width,
        height=rows * cell.height,
        left=max(0.5, label_reach(names, slanted, cell.width) + 0.1),
        above=text_height(max(map(len, titles)), TEXT_SIZE) + 0.06,
        below=label_depth([*names, _MEAN.replace("\n", " ")], slanted) + 0.3,
        right=0.75,
        header=header_height(len(notes)) + 0.1,
    )
    with house_style():
        figure = grid.figure()
        for panel, summary in enumerate(summaries):
            axes = grid.axes(figure, panel, _rows_high(summary) * cell.height)
            _panel(axes, summary, cell, scale)
            if sheet:
                axes.set_title(
                    "\n".join(titles[panel]),
                    fontsize=TEXT_SIZE,
                    fontweight="bold",
                    loc="left",
                    pad=4,
                )
            first_of_line, lowest = grid.is_first_of_line(panel), grid.is_lowest(panel)
            _label_axes(axes, summary, names, slanted, first_of_line, lowest)
        _colour_bar(figure, grid, scale)
        grid.write_header(figure, title, notes)
    return figure


def _cell(T: int) -> _Cell:
    if T <= 6:
        return _Cell(0.56, 0.42, mean_size=8.5, spread_size=6.0)
    if T <= 10:
        return _Cell(0.48, 0.36, mean_size=7.5, spread_size=5.5)
    return _Cell(0.35, 0.26, mean_size=6.0, spread_size=None)


def accuracy_limits(summaries: Sequence[AccuracyOverSeeds]) -> tuple[float, float]:
    """The accuracies at the ends of the colour scale: 50 to 100 %, or 0 to 100 % where needed.

    Two fixed scales only, so that most figures can be compared with each other.
    """
    lowest = min(float(summary.learnt.min(initial=100.0)) for summary in summaries)
    return (50.0, 100.0) if lowest >= 50.0 else (0.0, 100.0)


def _rows_high(summary: AccuracyOverSeeds) -> int:
    return 1 if summary.joint else summary.tasks


def _panel(axes: Axes, summary: AccuracyOverSeeds, cell: _Cell, scale: Normalize) -> None:
    """Draws the cells; in data coordinates a cell is 1 x 1 and row i reaches from i-1 to i."""
    T = summary.tasks
    for i in summary.rows:
        for j in range(1, T + 1):
            mean, error = summary.mean[i - 1, j - 1], summary.error[i - 1, j - 1]
            _draw_cell(axes, cell, scale, (j - 1.0, i - 1.0), mean, error, learnt=j <= i)
        mean, error = summary.seen_mean[i - 1], summary.seen_error[i - 1]
        _draw_cell(axes, cell, scale, (T + _GAP, i - 1.0), mean, error, bold=True)
    axes.set_xlim(0.0, T + _GAP + 1.0)
    axes.set_ylim(float(T), float(T - _rows_high(summary)))


def _draw_cell(
    axes: Axes,
    cell: _Cell,
    scale: Normalize,
    corner: tuple[float, float],
    mean: float,
    error: float,
    learnt: bool = True,
    bold: bool = False,
) -> None:
    if np.isnan(mean):
        return
    x, y = corner
    if learnt:
        red, green, blue, _ = colour_map()(scale(mean))
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=(red, green, blue), edgecolor="white"))
        ink = text_colour((red, green, blue))
    else:
        axes.add_patch(
            Rectangle((x, y), 1, 1, facecolor=PALE, edgecolor=FAINT, hatch="////", linewidth=0.0)
        )
        axes.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor="white"))
        ink = QUIET_INK
    has_spread = cell.spread_size is not None and not np.isnan(error)
    axes.text(
        x + 0.5,
        y + (0.37 if has_spread else 0.5),
        number(mean),
        ha="center",
        va="center_baseline",
        fontsize=cell.mean_size,
        fontweight="bold" if bold else "normal",
        color=ink,
    )
    if has_spread:
        axes.text(
            x + 0.5,
            y + 0.76,
            f"± {number(error)}",
            ha="center",
            va="center_baseline",
            fontsize=cell.spread_size,
            color=ink,
        )


def _label_axes(
    axes: Axes,
    summary: AccuracyOverSeeds,
    names: Sequence[str],
    slanted: bool,
    first_of_line: bool,
    lowest: bool,
) -> None:
    T = summary.tasks
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    rows = ["all"] if summary.joint else [str(i) for i in summary.rows]
    if _rows_high(summary) == 1:  # too low for a label along the axis
        rows = [f"after\n{'all tasks' if summary.joint else 'task 1'}"]
    elif first_of_line:
        axes.set_ylabel("after training task", labelpad=4)
    axes.set_yticks([i - 0.5 for i in summary.rows], rows)
    mean = _MEAN.replace("\n", " ") if slanted else _MEAN
    axes.set_xticks([*(j + 0.5 for j in range(T)), T + _GAP + 0.5], [*names, mean])
    if slanted:
        slant_labels(axes)
    if lowest:
        axes.set_xlabel("accuracy on task", x=0.5 * T / (T + _GAP + 1), labelpad=3)


def _colour_bar(figure: Figure, grid: Grid, scale: Normalize) -> None:
    left, top = grid.total_width - grid.right + 0.18, grid.header + grid.above
    axes = grid.axes_at(figure, left, top, 0.12, grid.height)
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 100.0)
    ticks = np.linspace(low, high, 6 if grid.height > 1.0 else 2)
    bar = figure.colorbar(ScalarMappable(scale, colour_map()), cax=axes, ticks=list(ticks))
    bar.outline.set_visible(False)
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
