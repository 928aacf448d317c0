"""Time and memory over width, depth, channels, weight samples, batch and tasks.

One axis grows at a time, from the recipe's network. An axis is a name, its values, the keys of the
recipe that a value stands for and, for another kind of layer, the network that takes the place of
the recipe's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import nn

from vcl_radial.bench import many_tasks, memory
from vcl_radial.bench.data import noise
from vcl_radial.bench.kl import seconds_per_call
from vcl_radial.bench.pictures import Growth
from vcl_radial.bench.setting import Images, Result, Row, Setting, Sizes, row
from vcl_radial.bench.timing import interleaved, ratios
from vcl_radial.bench.training import TWO_TASKS, Training, epochs_to_fill
from vcl_radial.nn import PointConv2d, WithHeads, kl_divergence
from vcl_radial.tracks.networks import posterior_of

METHODS = ("radial-vcl", "naive")
"""A Bayesian network, and the same with point estimates on the same machinery."""

PICTURES = (Growth("growth", "Cost of a training step"),)
_CONVOLUTIONS = 3


def convolutional(channels: int, training: Training) -> nn.Module:
    """3x3 convolutions of so many channels with ReLUs, each of which halves the image, and heads.

    For the stream (square images of one channel, flat or not) and the recipe of a training.
    """
    stream = training.run.stream
    side = math.isqrt(stream.x[0].numel())
    convolutions = [
        module
        for inputs, outputs in pairwise([1, *[channels] * _CONVOLUTIONS])
        for module in (PointConv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU(inplace=True))
    ]
    body = nn.Sequential(nn.Flatten(), nn.Unflatten(1, (1, side, side)), *convolutions)
    return WithHeads(
        body.append(nn.Flatten()),
        stream.x[0].shape,
        stream.n_classes,
        posterior=posterior_of(training.recipe),
    )


class Axis(NamedTuple):
    """What grows."""

    name: str
    values: Callable[[Sizes], tuple[int, ...]]
    keys: Callable[[int, Sizes], dict[str, Any]]
    network: Callable[[int, Training], nn.Module] | None = None
    """What takes the place of the recipe's network."""


AXES = (
    Axis("width", lambda sizes: sizes.widths, lambda n, sizes: {"hidden": [n] * 4}),
    Axis("depth", lambda sizes: sizes.depths, lambda n, sizes: {"hidden": [sizes.width] * n}),
    Axis("samples", lambda sizes: sizes.samples, lambda n, sizes: {"train_samples": n}),
    Axis("batch", lambda sizes: sizes.batches, lambda n, sizes: {"batch_size": n}),
    Axis(
        "channels",
        lambda sizes: sizes.channels,
        lambda n, sizes: {"hidden": [1]},  # what is replaced need not be large
        convolutional,
    ),
)


def measure(setting: Setting) -> Result:
    """Seconds per step along each axis, the memory of widths, and the cost of many tasks."""
    sizes = setting.sizes
    images = noise(setting.scratch / "growth", 4, sizes.growth_images, 1)
    rows = [r for axis in AXES for r in _along(axis, images, setting)]
    rows += memory.of_widths(METHODS, setting)
    rows += many_tasks.cost_of_tasks(METHODS, setting)
    bayesian, point = METHODS
    return Result(
        rows,
        [
            f"Images: {images.description}; time does not depend on what they show. Along an axis "
            "all else is as in the recipe: four hidden layers of "
            f"{sizes.width}, one weight sample, its batch.",
            f"Channels: those of {_CONVOLUTIONS} convolutions, 3x3 with stride 2, instead of the "
            "hidden layers.",
            f"KL over forward pass: the value of the whole network's KL in {bayesian}, over the "
            f"forward pass of {point} for one batch.",
            "Memory is counted in multiples of the number of weights (4 bytes each); the prior "
            "has a mean and a scale for each, AMSGrad three numbers for each parameter.",
        ],
    )


def _along(axis: Axis, images: Images, setting: Setting) -> list[Row]:
    trainings = {
        (method, value): _prepared(axis, value, method, images, setting)
        for value in axis.values(setting.sizes)
        for method in METHODS
    }
    repeats = setting.slow_repeats
    names = {f"{method} {value}": t for (method, value), t in trainings.items()}
    interleaved({n: t.train for n, t in names.items()}, repeats, setting.clock, warm_up=0)
    bayesian, point = METHODS
    rows = []
    for value in axis.values(setting.sizes):
        size, pair = f"{axis.name}={value}", {m: trainings[m, value] for m in METHODS}
        steps = {m: [s / t.steps for s in t.epoch_seconds[-repeats:]] for m, t in pair.items()}
        rows += [
            row("growth", m, size, "seconds per step", seconds) for m, seconds in steps.items()
        ]
        to_point = ratios(steps, point)[bayesian]
        rows.append(row("growth", bayesian, size, f"ratio to {point}", to_point))
        kl = _kl_over_forward(pair[bayesian], pair[point], setting)
        rows.append(row("growth", bayesian, size, "KL over forward pass", kl))
    return rows


def _prepared(axis: Axis, value: int, method: str, images: Images, setting: Setting) -> Training:
    """A training that has been warmed up, with as many epochs as fill a unit."""
    sizes = setting.sizes
    # Two epochs are the fewest of which the second can be told from the fixed costs.
    keys = {"epochs": 2, **sizes.recipe, **TWO_TASKS, **axis.keys(value, sizes)}
    training = Training(method, keys, images, setting.device, setting.clock)
    if axis.network is not None:
        _give_network(training, axis.network(value, training))
    training.train()
    training.strategy.train_epochs = epochs_to_fill(sizes.unit_seconds, training.epoch_seconds[-1])
    return training


def _give_network(training: Training, network: nn.Module) -> None:
    """Put another network in the place of the recipe's, and train the first task with it."""
    strategy = training.strategy
    strategy.method.network = strategy.model.network = network.to(strategy.device)
    strategy.train(training.run.train_experiences[:1], eval_streams=[])


@torch.no_grad()
def _kl_over_forward(bayesian: Training, point: Training, setting: Setting) -> list[float]:
    task = 1  # the second, which was trained last
    x = point.strategy.tensor_stream.inputs(task, "train")[: point.recipe.batch_size]
    seconds = seconds_per_call(
        {
            "KL": lambda: kl_divergence(bayesian.strategy.network, [task]),
            "forward pass": lambda: point.strategy.network(x, task),
        },
        setting.slow_repeats,
        setting,
    )
    return ratios(seconds, "forward pass")["KL"]
