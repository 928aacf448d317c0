"""What each layer's posterior does over the tasks: how far it goes, how sure it gets, its KL."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from vcl_radial.figures.layout import Grid, fill, header_height, text_width, wrap
from vcl_radial.figures.over_seeds import benchmark_name, method_names
from vcl_radial.figures.style import FAINT, SMALL_SIZE, TEXT_SIZE, LineLook, house_style, line_looks
from vcl_radial.metrics import mean_and_standard_error

_WIDTH, _HEIGHT, _LEFT = 1.6, 1.25, 0.6  # of a panel, and of the space beside it, in inches
_DASHES: tuple[object, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))


class Quantity(NamedTuple):
    """A row of the figure: a column of `layers.csv`, and how it is drawn."""

    column: str
    words: str
    logarithmic: bool


QUANTITIES = (
    Quantity("moved", "shift of the means\nin the prior's noise", True),
    Quantity("units_at_rest", "units at rest (%)", False),
    Quantity("noise", "noise of a weight", True),
    Quantity("kl", "KL to the prior (nats)", True),
)
"""`vcl_radial.nn.movement.LayerMovement` defines them."""

SPREAD = "mean ± standard error over seeds"
FIRST_PRIOR = "task 1 is held against the initial prior, later ones against the posterior carried"


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
        for panel in range(grid.panels):
            row, column = divmod(panel, len(names))
            axes = grid.axes(figure, panel)
            if column > 0:
                axes.sharey(figure.axes[panel - column])
            of_layer = layers[layers["layer"] == names[column]]
            quantity = QUANTITIES[row]
            # Eq. 44 is no KL: it falls below zero. What rests exactly has moved by 0.
            signed = quantity.logarithmic and bool((layers[quantity.column] <= 0).any())
            for method, runs in of_layer.groupby("method", sort=False):
                _line(axes, runs, quantity, looks[str(method)], signed)
            if signed:
                sizes = layers[quantity.column].abs()
                axes.set_yscale("symlog", linthresh=_power_below(sizes[sizes > 0].min()))
            elif quantity.logarithmic:
                axes.set_yscale("log")
            _label(axes, quantity, first=column == 0, last=grid.is_lowest(panel))
            if row == 0:
                axes.set_title(names[column], fontsize=TEXT_SIZE, fontweight="bold", loc="left")
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


def _line(axes: Axes, runs: pd.DataFrame, quantity: Quantity, look: LineLook, signed: bool) -> None:
    tasks = sorted(runs["task_trained"].unique())
    pairs = [
        mean_and_standard_error(runs.loc[runs["task_trained"] == task, quantity.column])
        for task in tasks
    ]
    mean, error = np.array(pairs).reshape(-1, 2).T
    axes.plot(
        tasks,
        mean,
        color=look.style.colour,
        linestyle=_DASHES[look.dashes],
        linewidth=1.3,
        marker=look.style.marker,
        markersize=3.5,
        markeredgewidth=0.0,
        label=str(runs["method"].iloc[0]),
        clip_on=False,
    )
    if not np.isnan(error).all():
        low = mean - error
        if quantity.logarithmic and not signed:  # a band that reaches zero ends at the paper's edge
            low = np.where(low > 0, low, np.minimum(mean, mean / 10))
        axes.fill_between(
            tasks, low, mean + error, color=look.style.colour, alpha=0.16, linewidth=0.0
        )


def _label(axes: Axes, quantity: Quantity, *, first: bool, last: bool) -> None:
    if quantity.logarithmic:
        axes.yaxis.set_major_formatter(FuncFormatter(_power))
        axes.yaxis.set_minor_formatter(FuncFormatter(partial(_within_a_decade, axes)))
        axes.tick_params(axis="y", which="minor", labelsize=SMALL_SIZE)
    else:
        axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    if first:
        axes.set_ylabel(quantity.words, fontsize=SMALL_SIZE)
        axes.yaxis.set_label_coords(-0.27, 0.5)
    else:
        axes.tick_params(axis="y", labelleft=False)
    if last:
        axes.set_xlabel("after training task")
    else:
        axes.set_xticklabels([])


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power(value: float, _: int) -> str:
    """A power of ten; a short number as such."""
    if value == 0 or 1e-3 <= abs(value) <= 1e3:
        return f"{value:g}".replace("-", "−")
    return ("−10" if value < 0 else "10") + f"{np.log10(abs(value)):.0f}".translate(_RAISED)


def _power_below(value: float) -> float:
    return float(10.0 ** np.floor(np.log10(value)))


def _within_a_decade(axes: Axes, value: float, _: int) -> str:
    """The label of a tick between powers of ten: none where there are two powers."""
    low, high = axes.get_ylim()
    few = high > 3 * low
    shown = high < 10 * low and (not few or f"{value:e}"[0] in "25")
    return f"{value:g}" if shown else ""
