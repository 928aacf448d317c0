"""What each layer's posterior does over the tasks: how far it goes, how sure it gets, its KL."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from vcl_radial.report.figures.layer_table import (
    FIRST_PRIOR,
    QUANTITIES,
    SPREAD,
    Means,
    Quantity,
    Scale,
    layer_means,
    scale_of,
    tick_labels,
)
from vcl_radial.report.figures.layout import Grid, fill, header_height, text_width, wrap
from vcl_radial.report.figures.over_seeds import benchmark_name, method_names
from vcl_radial.report.figures.style import (
    FAINT,
    SMALL_SIZE,
    TEXT_SIZE,
    LineLook,
    house_style,
    line_looks,
)

_WIDTH, _HEIGHT, _LEFT = 1.6, 1.25, 0.6  # of a panel, and of the space beside it, in inches
_DASHES: tuple[object, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))


def layer_movement(layers: pd.DataFrame) -> Figure:
    """A row of panels per quantity, with one scale, a column per layer, a line per method.

    In task 1 the prior is the one that a method starts with; from task 2 on it is the posterior
    carried forward. The band is the mean over the seeds plus and minus its standard error.

    Args:
        layers: The `layers.csv` of runs of one benchmark, with `benchmark, method, seed`.

    Returns:
        The figure.

    Raises:
        DataError: A column is missing, or the table holds more than one benchmark.
    """
    benchmark, methods = benchmark_name(layers), method_names(layers)
    names = list(layers["layer"].unique())
    panels_width = len(names) * (_WIDTH + _LEFT)
    notes = fill([SPREAD, FIRST_PRIOR], panels_width + 1.0, TEXT_SIZE)
    labels = {method: "\n".join(wrap(method, 2.2, SMALL_SIZE)) for method in methods}
    lines = "\n".join(labels.values()).split("\n")
    grid = Grid(
        panels=len(QUANTITIES) * len(names),
        per_line=len(names),
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        above=0.28,
        below=0.12,
        right=max(text_width(line, SMALL_SIZE) for line in lines) + 0.75,
        header=header_height(len(notes)) + 0.05,
    )
    looks = line_looks(methods)
    with house_style():
        figure = grid.figure()
        for row, quantity in enumerate(QUANTITIES):
            means = layer_means(layers, quantity)
            scale = scale_of(means.values(), quantity)
            for column, name in enumerate(names):
                panel = row * len(names) + column
                axes = grid.axes(figure, panel)
                for method in methods:
                    if (name, method) in means:
                        _line(axes, method, means[name, method], scale, looks[method])
                _label(axes, quantity, scale, first=column == 0, last=grid.is_lowest(panel))
                if row == 0:
                    axes.set_title(name, fontsize=TEXT_SIZE, fontweight="bold", loc="left")
        handles = _handles(figure)
        figure.legend(
            [handles[method] for method in methods],
            [labels[method] for method in methods],
            loc="upper left",
            bbox_to_anchor=(
                (panels_width + 0.15) / grid.total_width,
                1 - (grid.header + grid.above) / grid.total_height,
            ),
            borderaxespad=0.0,
            frameon=False,
            fontsize=SMALL_SIZE,
            handlelength=2.6,
        )
        grid.write_header(figure, f"{benchmark}: the layers", notes)
    return figure


def _handles(figure: Figure) -> dict[str, Artist]:
    """The first line of each method, wherever it is drawn."""
    return {str(line.get_label()): line for axes in reversed(figure.axes) for line in axes.lines}


def _line(axes: Axes, method: str, line: Means, scale: Scale, look: LineLook) -> None:
    mean, error = np.array(line.mean), np.array(line.error)
    axes.plot(
        line.tasks,
        mean,
        color=look.style.colour,
        linestyle=_DASHES[look.dashes],
        linewidth=1.3,
        marker=look.style.marker,
        markersize=3.5,
        markeredgewidth=0.0,
        label=method,
        clip_on=False,
    )
    if not np.isnan(error).all():
        low = np.maximum(mean - error, scale.low)  # a band that reaches 0 ends at the panel's edge
        axes.fill_between(
            line.tasks, low, mean + error, color=look.style.colour, alpha=0.16, linewidth=0.0
        )


def _label(axes: Axes, quantity: Quantity, scale: Scale, *, first: bool, last: bool) -> None:
    if scale.threshold == 0:
        axes.set_yscale("log")
    elif math.isfinite(scale.threshold):
        axes.set_yscale("symlog", linthresh=scale.threshold)
    axes.set_ylim(scale.low, scale.high)
    axes.set_yticks(scale.ticks, tick_labels(scale.ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    if first:
        axes.set_ylabel(quantity.title, fontsize=SMALL_SIZE)
        axes.yaxis.set_label_coords(-0.27, 0.5)
    else:
        axes.tick_params(axis="y", labelleft=False)
    if last:
        axes.set_xlabel("after training task")
    else:
        axes.set_xticklabels([])
