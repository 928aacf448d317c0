"""What each layer's posterior does over the tasks: how far it goes, how sure it gets, its KL."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
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
from vcl_radial.report.figures.over_seeds import benchmark_name, method_names
from vcl_radial.report.figures.panels import finish, panel_title, panels, wrap
from vcl_radial.report.figures.style import (
    DASHES,
    FAINT,
    SMALL_SIZE,
    LineLook,
    house_style,
    line_looks,
)

_WIDTH, _HEIGHT = 1.6, 1.25  # of a panel, in inches


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
    looks = line_looks(methods)
    with house_style():
        figure, grid = panels(len(QUANTITIES) * len(names), len(names))
        for row, quantity in enumerate(QUANTITIES):
            means = layer_means(layers, quantity)
            scale = scale_of(means.values(), quantity)
            for column, name in enumerate(names):
                axes = grid[row * len(names) + column]
                for method in methods:
                    if (name, method) in means:
                        _line(axes, method, means[name, method], scale, looks[method])
                last = row == len(QUANTITIES) - 1
                _label(axes, quantity, scale, first=column == 0, last=last)
                if row == 0:
                    panel_title(axes, name, _WIDTH)
        # A method may have no line in some panels.
        handles = {
            str(line.get_label()): line for axes in reversed(figure.axes) for line in axes.lines
        }
        figure.legend(
            [handles[method] for method in methods],
            ["\n".join(wrap(method, 2.2, SMALL_SIZE)) for method in methods],
            loc="outside right upper",
            frameon=False,
            fontsize=SMALL_SIZE,
            handlelength=2.6,
        )
        notes = [SPREAD, FIRST_PRIOR]
        finish(figure, (_WIDTH, _HEIGHT), f"{benchmark}: the layers", notes)
    return figure


def _line(axes: Axes, method: str, line: Means, scale: Scale, look: LineLook) -> None:
    mean, error = np.array(line.mean), np.array(line.error)
    axes.plot(
        line.tasks,
        mean,
        color=look.style.colour,
        linestyle=DASHES[look.dashes],
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
    else:
        axes.tick_params(axis="y", labelleft=False)
    if last:
        axes.set_xlabel("after training task")
    else:
        axes.set_xticklabels([])
