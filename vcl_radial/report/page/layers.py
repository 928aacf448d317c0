"""What the layers do, as SVG coordinates: a row of drawings per quantity, one per layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from vcl_radial.report.figures.layer_table import (
    QUANTITIES,
    Means,
    Quantity,
    Scale,
    layer_means,
    scale_of,
    tick_labels,
)
from vcl_radial.report.page.charts import (
    Chart,
    Frame,
    Line,
    Point,
    band_of,
    path_of,
    task_ticks,
)

FRAME = Frame(280, 180, left=54, right=10, top=10, bottom=38)


@dataclass(frozen=True)
class Layer:
    """A layer with a drawing of each quantity."""

    name: str
    charts: list[Chart]


def layer_charts(layers: pd.DataFrame) -> list[Layer]:
    """The drawings of a benchmark's layers.

    Args:
        layers: The `layers.csv` of its runs, with `benchmark, method, seed`.

    Returns:
        The layers in the order of the network, with a drawing of each of `QUANTITIES`. A quantity
        has one scale for all layers.
    """
    tasks = int(layers["task_trained"].max())
    names = [str(name) for name in layers["layer"].unique()]
    means = {quantity: layer_means(layers, quantity) for quantity in QUANTITIES}
    scales = {quantity: scale_of(means[quantity].values(), quantity) for quantity in QUANTITIES}
    return [
        Layer(
            name,
            [
                _chart(quantity, scales[quantity], tasks, _of_layer(means[quantity], name))
                for quantity in QUANTITIES
            ],
        )
        for name in names
    ]


def _of_layer(means: dict[tuple[str, str], Means], name: str) -> dict[str, Means]:
    return {method: line for (layer, method), line in means.items() if layer == name}


def _chart(quantity: Quantity, scale: Scale, tasks: int, means: dict[str, Means]) -> Chart:
    lines = [_line(method, line, scale, tasks) for method, line in means.items()]
    labels = tick_labels(scale.ticks)
    return Chart(
        quantity.title.replace("\n", " "),
        FRAME,
        False,
        task_ticks(FRAME, tasks),
        [(_y(scale, tick), text) for tick, text in zip(scale.ticks, labels, strict=True)],
        [line for line in lines if line.points],
    )


def _line(method: str, line: Means, scale: Scale, tasks: int) -> Line:
    triples = [t for t in zip(*line, strict=True) if math.isfinite(t[1])]
    points = [
        Point(
            FRAME.x(task, tasks),
            _y(scale, mean),
            f"{method}, task {task}: {mean:.3g}" + ("" if math.isnan(e) else f" ± {e:.2g}"),
        )
        for task, mean, e in triples
    ]
    spread = [t for t in triples if math.isfinite(t[2])]
    upper = [(FRAME.x(task, tasks), _y(scale, mean + e)) for task, mean, e in spread]
    lower = [(FRAME.x(task, tasks), _y(scale, mean - e)) for task, mean, e in spread]
    path = path_of([(p.x, p.y) for p in points])
    return Line(method, path, band_of(upper, lower), points, level=False)


def _y(scale: Scale, value: float) -> float:
    return FRAME.y(scale.place(value))
