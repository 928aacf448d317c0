"""Draw the accuracy on every task after every task, the matrix R, as a heatmap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from vcl_radial.reporting.blocks import number
from vcl_radial.reporting.figures.drawing import sheet
from vcl_radial.reporting.figures.names import benchmark_label, method_label
from vcl_radial.reporting.figures.over_seeds import AccuracyOverSeeds, all_over_seeds, seeds_text
from vcl_radial.reporting.figures.panels import balanced_per_line, label_columns, task_names
from vcl_radial.reporting.figures.style import FAINT, PALE, QUIET_INK, colour_map, text_colour

_GAP = 0.3  # between the last task and the column of means, in cells
_NARROWEST_ROW = 0.13  # inches of a row that has a number
_MOST_NUMBERS = 30  # with more tasks the cells are too small for numbers
_MEAN = "mean of\ntasks seen"


@dataclass(frozen=True)
class _Cell:
    """The size of a cell in inches and of its text in points; None if the text does not fit."""

    width: float
    height: float
    mean_size: float | None
    spread_size: float | None


def heatmap_sheet(
    results: pd.DataFrame,
    *,
    methods: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    metric: str = "accuracy",
) -> Figure:
    """Draw a heatmap per method: a row per task trained, a column per task evaluated.

    Each cell holds the mean accuracy over the seeds and the standard error of that mean.
    Cells of tasks that were not trained yet are hatched and have no colour. The column at the
    right is the average accuracy over the tasks seen so far. A joint run has one row. All
    heatmaps have one colour scale.

    Args:
        results: Tidy tables of the runs of one benchmark, with `benchmark, method, seed`.
        methods: The methods to draw, in order; by default all, as they first appear.
        tasks: Names of the tasks; by default their numbers.
        metric: The metric to show, such as "accuracy" or "AUC"; in per cent.

    Raises:
        DataError: The results do not hold a method, or more than one benchmark.
    """
    summaries = all_over_seeds(results, methods, metric)
    T = max(summary.tasks for summary in summaries)
    names, cell = task_names(tasks, T), _cell(T)
    scale = Normalize(*accuracy_limits(summaries))
    rows = max(_rows_high(summary) for summary in summaries)
    per_line = balanced_per_line(len(summaries), 3 if T <= 6 else 2)
    notes = [seeds_text(summaries, with_spread=cell.spread_size is not None)]
    ahead = (summary.mean[np.triu_indices_from(summary.mean, 1)] for summary in summaries)
    if any(np.isfinite(values).any() for values in ahead):
        look = "pale" if cell.mean_size is None else "hatched"
        notes.append(f"{look}: task not trained yet")
    with sheet(
        benchmark_label(summaries[0].benchmark),
        notes,
        [method_label(summary.method) for summary in summaries],
        per_line=per_line,
        width=(T + _GAP + 1) * cell.width,
        height=rows * cell.height,
        grid=None,
    ) as (figure, grid):
        for index, (axes, summary) in enumerate(zip(grid, summaries, strict=True)):
            _panel(axes, summary, cell, scale)
            _label_axes(axes, summary, names, cell, first_of_line=index % per_line == 0)
            if index + per_line >= len(summaries):
                axes.set_xlabel(f"{metric} on task", x=0.5 * T / (T + _GAP + 1), labelpad=3)
        _colour_bar(figure, grid[:per_line], scale, rows)
    return figure


def _cell(T: int) -> _Cell:
    if T <= 6:
        return _Cell(0.56, 0.42, mean_size=8.5, spread_size=6.0)
    if T <= 10:
        return _Cell(0.48, 0.36, mean_size=7.5, spread_size=5.5)
    if T <= _MOST_NUMBERS:
        return _Cell(0.35, 0.26, mean_size=6.0, spread_size=None)
    # There are T^2 cells: drawing texts, hatches and edges of thousands would take minutes.
    return _Cell(10.5 / T, 7.8 / T, mean_size=None, spread_size=None)


def accuracy_limits(summaries: Sequence[AccuracyOverSeeds]) -> tuple[float, float]:
    """The accuracies at the ends of the colour scale: 50 to 100 %, or 0 to 100 % if necessary.

    Two fixed scales only, so that most figures can be compared with each other.
    """
    lowest = min(float(summary.learnt.min(initial=100.0)) for summary in summaries)
    return (50.0, 100.0) if lowest >= 50.0 else (0.0, 100.0)


def _rows_high(summary: AccuracyOverSeeds) -> int:
    return 1 if summary.joint else summary.tasks


def _panel(axes: Axes, summary: AccuracyOverSeeds, cell: _Cell, scale: Normalize) -> None:
    """Draw the cells; in data coordinates a cell is 1 x 1 and row i reaches from i-1 to i."""
    T, rows = summary.tasks, [i - 1 for i in summary.rows]
    # The columns are the tasks, a gap, and the average over the tasks seen.
    gap = np.full((T, 1), np.nan)
    mean = np.hstack([summary.mean, gap, summary.seen_mean[:, None]])[rows]
    error = np.hstack([summary.error, gap, summary.seen_error[:, None]])[rows]
    ahead = np.triu(np.ones((T, T + 2), bool), 1)[rows] & (np.arange(T + 2) < T)
    x = np.array([*range(T + 1), T + _GAP, T + _GAP + 1], float)
    y = np.array([*rows, rows[-1] + 1])
    cells = np.ma.masked_where(ahead | np.isnan(mean), mean)
    small = cell.mean_size is None
    edges: dict[str, Any] = {"rasterized": True} if small else {"edgecolors": "white"}
    axes.pcolormesh(x, y, cells, cmap=colour_map(), norm=scale, linewidth=0.8, **edges)
    later = np.ma.masked_where(~ahead | np.isnan(mean), mean)
    if ahead.any():
        pale = ListedColormap([PALE])
        if small:
            axes.pcolormesh(x, y, later, cmap=pale, rasterized=True)
        else:
            axes.pcolor(x, y, later, cmap=pale, edgecolor=FAINT, hatch="////", linewidth=0.0)
    for (row, column), value in np.ndenumerate(mean if not small else mean[:0]):
        if np.isnan(value):
            continue
        ink = QUIET_INK
        if not ahead[row, column]:
            red, green, blue, _ = colour_map()(float(scale(value)))
            ink = text_colour((red, green, blue))
        across, down = float(x[column]) + 0.5, float(y[row])
        spread = float(error[row, column])
        shown = cell.spread_size is not None and not np.isnan(spread)
        # The text is inside its cell, so leaving it out of the layout is safe and much faster.
        look: dict[str, Any] = {
            "ha": "center",
            "va": "center_baseline",
            "color": ink,
            "in_layout": False,
        }
        axes.text(
            across,
            down + (0.37 if shown else 0.5),
            number(value),
            fontsize=cell.mean_size,
            fontweight="bold" if column > T else "normal",
            **look,
        )
        if shown:
            axes.text(across, down + 0.76, f"± {number(spread)}", fontsize=cell.spread_size, **look)
    axes.set_xlim(0.0, T + _GAP + 1.0)
    axes.set_ylim(float(T), float(T - _rows_high(summary)))
    axes.set_aspect(cell.height / cell.width, anchor="NW")


def _label_axes(
    axes: Axes, summary: AccuracyOverSeeds, names: Sequence[str], cell: _Cell, first_of_line: bool
) -> None:
    T = summary.tasks
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    rows = [str(i) for i in summary.rows]
    if _rows_high(summary) == 1:  # the row is too low for a label along the axis
        rows = [f"after\n{'all tasks' if summary.joint else 'task 1'}"]
    elif first_of_line:
        axes.set_ylabel("after training task", labelpad=4)
    step = math.ceil(_NARROWEST_ROW / cell.height)
    axes.set_yticks([i - 0.5 for i in summary.rows][::step], rows[::step])
    places = [*(j + 0.5 for j in range(T)), T + _GAP + 0.5]
    label_columns(axes, places, [*names, _MEAN], cell.width)


def _colour_bar(figure: Figure, grid: Sequence[Axes], scale: Normalize, rows: int) -> None:
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 100.0)
    ticks = list(np.linspace(low, high, 6 if rows > 2 else 2))
    mappable = ScalarMappable(scale, colour_map())
    bar = figure.colorbar(
        mappable, ax=list(grid), ticks=ticks, aspect=8 * rows**0.5, pad=0.02, panchor=False
    )
    bar.outline.set_visible(False)
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
