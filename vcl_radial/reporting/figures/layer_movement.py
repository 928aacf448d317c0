"""Draw the movement, the spread and the KL of each layer's posterior over the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from vcl_radial.reporting.figures.drawing import Curve, key_line, line, sheet
from vcl_radial.reporting.figures.names import benchmark_label, method_label
from vcl_radial.reporting.figures.over_seeds import benchmark_name, method_names
from vcl_radial.reporting.figures.style import SMALL_SIZE, MethodStyle, method_styles

_WIDTH, _HEIGHT = 1.6, 1.25  # of a panel, in inches
_LOOK: Any = {"linewidth": 1.3, "markersize": 3.5, "markeredgewidth": 0.0}


class Quantity(NamedTuple):
    """A row of the figure: a column of `layers.csv` and its title."""

    column: str
    title: str


QUANTITIES = (
    Quantity("moved", "shift of the means\nin the prior's noise"),
    Quantity("units_at_rest", "units at rest (%)"),
    Quantity("noise", "noise of a weight"),
    Quantity("kl", "KL to the prior (nats)"),
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
    names = [str(name) for name in layers["layer"].unique()]
    notes = [
        "mean ± standard error over seeds" if layers["seed"].nunique() > 1 else "a single seed",
        "task 1 is compared with the initial prior, later ones with the posterior carried",
    ]
    with sheet(
        f"{benchmark_label(benchmark)}: the layers",
        notes,
        [*map(layer_label, names), *[""] * (len(QUANTITIES) - 1) * len(names)],
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


def layer_label(name: str) -> str:
    """The readable name of a layer: `body.0` is "layer 1"; the name of a head stays."""
    kind, _, number = name.partition(".")
    return f"layer {int(number) + 1}" if kind == "body" and number.isdecimal() else name


def _draw_row(
    panels: list[Axes],
    layers: pd.DataFrame,
    styles: Mapping[str, MethodStyle],
    quantity: Quantity,
) -> None:
    """Draw the panels of one quantity; layers differ by orders of magnitude, so do their axes."""
    runs = layers.groupby(["layer", "method", "task_trained"])[quantity.column]
    means = runs.agg(["mean", "sem"])
    for axes, name in zip(panels, layers["layer"].unique(), strict=True):
        for method, style in styles.items():
            if (name, method) in means.index:
                curve = _curve(means.loc[(name, method), :], method)
                line(axes, curve, style.colour, **style.look, **_LOOK)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        if quantity.column == "units_at_rest":
            axes.set_ylim(0, 100)
        elif quantity.column == "kl":
            axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    panels[0].set_ylabel(quantity.title, fontsize=SMALL_SIZE)


def _curve(of_tasks: pd.DataFrame, method: str) -> Curve:
    """The line of a method, with a band if there are several seeds."""
    mean, error = of_tasks["mean"], of_tasks["sem"]
    band = (
        (None, None) if error.isna().all() else ((mean - error).tolist(), (mean + error).tolist())
    )
    return Curve("", method, of_tasks.index.tolist(), mean.tolist(), *band)
