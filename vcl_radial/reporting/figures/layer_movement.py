"""Draw the movement, the spread and the KL of each layer's posterior over the tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vcl_radial.reporting.figures.drawing import (
    Curve,
    key_line,
    line,
    logarithmic,
    power_labels,
    sheet,
)
from vcl_radial.reporting.figures.over_seeds import benchmark_name, method_names
from vcl_radial.reporting.figures.style import SMALL_SIZE, MethodStyle, method_label, method_styles

_WIDTH, _HEIGHT = 1.6, 1.25  # of a panel, in inches
_LOOK: Any = {"linewidth": 1.3, "markersize": 3.5, "markeredgewidth": 0.0}


class Quantity(NamedTuple):
    """A row of the figure: a column of `layers.csv`, its title, whether its axis is logarithmic."""

    column: str
    title: str
    logarithmic: bool


QUANTITIES = (
    Quantity("moved", "shift of the means\nin the prior's noise", True),
    Quantity("units_at_rest", "units at rest (%)", False),
    Quantity("noise", "noise of a weight", True),
    Quantity("kl", "KL to the prior (nats)", True),
)
"""`vcl_radial.nn.movement.LayerMovement` defines them."""


def layer_movement(layers: pd.DataFrame) -> Figure:
    """Draw a row of panels per quantity, a column per layer, and a line per method.

    In task 1 the prior is the one that a method starts with; from task 2 on it is the posterior
    carried forward. The band is the mean over the seeds plus and minus its standard error.

    Args:
        layers: The `layers.csv` of runs of one benchmark, with `benchmark, method, seed`.

    Raises:
        DataError: A column is missing, or the table holds more than one benchmark.
    """
    benchmark, methods = benchmark_name(layers), method_names(layers)
    styles = method_styles(methods)
    names = list(layers["layer"].unique())
    notes = [
        "mean ± standard error over seeds",
        "task 1 is held against the initial prior, later ones against the posterior carried",
    ]
    with sheet(
        f"{benchmark}: the layers",
        notes,
        [*map(str, names), *[""] * (len(QUANTITIES) - 1) * len(names)],
        per_line=len(names),
        width=_WIDTH,
        height=_HEIGHT,
        key=[
            key_line(method_label(m), style.colour, **style.look, **_LOOK)
            for m, style in styles.items()
        ],
        grid="y",
    ) as (figure, grid):
        for row, quantity in enumerate(QUANTITIES):
            _draw_row(grid[row * len(names) :][: len(names)], layers, styles, quantity)
        for axes in grid[: -len(names)]:
            axes.set_xticklabels([])
        for axes in grid[-len(names) :]:
            axes.set_xlabel("after training task")
    return figure


def _draw_row(
    panels: list[Axes],
    layers: pd.DataFrame,
    styles: Mapping[str, MethodStyle],
    quantity: Quantity,
) -> None:
    """Draw the panels of one quantity, which share an axis."""
    first, *remaining = panels
    for axes in remaining:
        axes.sharey(first)
        axes.tick_params(axis="y", labelleft=False)
    runs = layers.groupby(["layer", "method", "task_trained"])[quantity.column]
    means = runs.agg(["mean", "sem"]).replace([np.inf, -np.inf], np.nan)
    positive = bool((means["mean"].dropna() > 0).all())
    for axes, name in zip(panels, layers["layer"].unique(), strict=True):
        for method, style in styles.items():
            if (name, method) in means.index:
                of_tasks = means.loc[(name, method), :]
                curve = _curve(of_tasks, method, quantity.logarithmic and positive)
                line(axes, curve, style.colour, **style.look, **_LOOK)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    first.set_ylabel(quantity.title, fontsize=SMALL_SIZE)
    if not quantity.logarithmic:
        first.set_ylim(0, 100)
    elif positive:
        logarithmic(first, "y", ticks=5)
    else:
        _decades_on_both_sides(first, means["mean"])


def _curve(of_tasks: pd.DataFrame, method: str, in_decades: bool) -> Curve:
    """The line of a method, with a band if there are several seeds."""
    mean, error = of_tasks["mean"], of_tasks["sem"]
    # On a logarithmic axis a band that reaches 0 ends below the mean.
    low = np.maximum(mean - error, mean / 10) if in_decades else mean - error
    band = (None, None) if error.isna().all() else (low.tolist(), (mean + error).tolist())
    return Curve("", method, of_tasks.index.tolist(), mean.tolist(), *band)


def _decades_on_both_sides(axes: Axes, means: pd.Series[float]) -> None:
    """Use logarithmic axes on both sides of a linear middle around 0.

    Eq. 44 is not a KL and can be negative; the means of a layer at rest have moved by exactly 0.
    """
    smallest = means[means != 0].abs().min()
    threshold = 1.0 if math.isnan(smallest) else 10.0 ** math.floor(math.log10(smallest))
    axes.set_yscale("symlog", linthresh=threshold)
    low, high = axes.get_ylim()
    powers = threshold * 10.0 ** np.arange(1 + math.log10(max(-low, high, threshold) / threshold))
    thinned = powers[:: math.ceil(len(powers) / 3)]
    axes.set_yticks([tick for tick in (*-thinned[::-1], 0.0, *thinned) if low <= tick <= high])
    power_labels(axes.yaxis)
