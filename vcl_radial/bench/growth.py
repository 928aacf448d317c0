"""How the cost of a training step grows: one axis at a time, from the recipe's network.

An axis is a name, its values, and the keys of the recipe that a value stands for. Another kind of
layer comes in as another axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from vcl_radial.bench import many_tasks, memory
from vcl_radial.bench.data import noise
from vcl_radial.bench.setting import Images, Result, Row, Setting, Sizes, row
from vcl_radial.bench.timing import interleaved
from vcl_radial.bench.training import TWO_TASKS, Training

METHODS = ("radial-vcl", "naive")
"""A Bayesian network, and the same with point estimates on the same machinery."""


class Axis(NamedTuple):
    """What grows."""

    name: str
    values: Callable[[Sizes], tuple[int, ...]]
    keys: Callable[[int, Sizes], dict[str, Any]]


AXES = (
    Axis("width", lambda sizes: sizes.widths, lambda n, sizes: {"hidden": [n] * 4}),
    Axis("depth", lambda sizes: sizes.depths, lambda n, sizes: {"hidden": [sizes.width] * n}),
    Axis("samples", lambda sizes: sizes.samples, lambda n, sizes: {"train_samples": n}),
    Axis("batch", lambda sizes: sizes.batches, lambda n, sizes: {"batch_size": n}),
)


def measure(setting: Setting) -> Result:
    """Seconds per step along each axis, the memory of widths, and the cost of many tasks."""
    sizes = setting.sizes
    images = noise(setting.scratch / "growth", 4, sizes.growth_images, 1)
    rows = [r for axis in AXES for r in _along(axis, images, setting)]
    rows += memory.of_widths(METHODS, setting)
    rows += many_tasks.measure(METHODS, setting)
    return Result(
        rows,
        [
            f"Images: {images.description}; time does not depend on what they show. Along an axis "
            "all else is as in the recipe: four hidden layers of "
            f"{sizes.width}, one weight sample, its batch.",
            "Memory is counted in multiples of the number of weights (4 bytes each); the prior "
            "has a mean and a scale for each, AMSGrad three numbers for each parameter.",
            "Convolutional layers are not measured: the suite has none yet.",
        ],
    )


def _along(axis: Axis, images: Images, setting: Setting) -> list[Row]:
    sizes, clock = setting.sizes, setting.clock
    trainings: dict[tuple[str, int], Training] = {}
    for value in axis.values(sizes):
        for method in METHODS:
            # Two epochs are the fewest of which the second can be told from the fixed costs.
            keys = {"epochs": 2, **sizes.recipe, **TWO_TASKS, **axis.keys(value, sizes)}
            training = Training(method, keys, images, setting.device, clock)
            training.train()
            lasting = sizes.unit_seconds / max(training.epoch_seconds[-1], 1e-6)
            training.strategy.train_epochs = max(2, math.ceil(lasting))
            trainings[method, value] = training
    names = {f"{method} {value}": t for (method, value), t in trainings.items()}
    interleaved({n: t.train for n, t in names.items()}, setting.slow_repeats, clock, warm_up=0)
    return [
        row(
            "growth",
            method,
            f"{axis.name}={value}",
            "seconds per step",
            [s / training.steps for s in training.epoch_seconds[-setting.slow_repeats :]],
        )
        for (method, value), training in trainings.items()
    ]
