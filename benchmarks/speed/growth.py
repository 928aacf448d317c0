"""Time and memory over weights, classes, draws and tasks, and the exponents of both.

One axis grows at a time, from the recipe's network. An axis is a name, its values, and the keys of
the recipe and the stream that a value stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.speed import many_tasks, memory
from benchmarks.speed.data import noise
from benchmarks.speed.exponents import NOTE, exponents
from benchmarks.speed.kl import seconds_per_call
from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Images, Result, Row, Setting, Sizes, row
from benchmarks.speed.step import SECONDS
from benchmarks.speed.timing import ratios
from benchmarks.speed.training import TWO_TASKS, Training, number_of_weights, step_seconds

METHODS = ("radial-vcl", "naive")
"""A Bayesian network, and the same with point estimates on the same machinery."""

PICTURES = (Growth("growth", "Cost of a step, a task, an evaluation and a prediction"),)
LAYERS = 4
BATCH, PROBED_BATCH, SCORED = 256, 64, 128
"""Rows of a batch, of one where memory is measured, and of the images that are scored there."""


class Axis(NamedTuple):
    """What grows: its name, its values, and the keys, the classes and the size of a value."""

    name: str
    values: Callable[[Sizes], tuple[int, ...]]
    keys: Callable[[int], dict[str, Any]]
    classes: Callable[[int], int] = lambda n: 2
    size: Callable[[int], int] = lambda n: n

    def named(self, value: int) -> str:
        """The size of a row."""
        return f"{self.name}={self.size(value)}"

    def images(self, value: int, rows: int, setting: Setting) -> Images:
        """Random images for a value: for each task at least so many to train on."""
        tasks, classes = self.keys(value).get("stream.tasks", 2), self.classes(value)
        folder = setting.scratch / f"{self.name}-{value}-{rows}"
        scored = SCORED // (1 if self.name == "prediction draws" else tasks) // classes
        return noise(folder, tasks * classes, -(-rows // classes), max(1, scored))


def _weights(width: int) -> int:
    """Of a network for images of 28x28 with so wide layers and two heads of two classes."""
    return number_of_weights([*pairwise([784, *[width] * LAYERS, 2])], heads=2)


STEPS = (
    Axis("weights", lambda sizes: sizes.widths, lambda n: {"hidden": [n] * LAYERS}, size=_weights),
    Axis("classes", lambda sizes: sizes.classes, lambda n: {}, lambda n: n),
    Axis("draws", lambda sizes: sizes.draws, lambda n: {"train_samples": n}),
)
PREDICTIONS = Axis("prediction draws", lambda s: s.prediction_draws, lambda n: {"eval_samples": n})
TASKS = Axis(
    "tasks",
    lambda sizes: sizes.tasks,
    # Few images: they are not to outweigh the network.
    lambda n: {"stream.tasks": n, "batch_size": 4, "eval_samples": 1},
)


def measure(setting: Setting) -> Result:
    """Seconds and peak memory along each axis, and their exponents."""
    rows = [r for axis in STEPS for r in _steps(axis, setting)]
    rows += _predictions(setting)
    rows += many_tasks.cost_of_tasks(METHODS, setting)
    rows += memory.peaks("growth", _probes(setting))
    rows += exponents("growth", rows)
    return Result(
        rows,
        [
            "Random images of 28x28; time does not depend on what they show. Along an axis all "
            f"else is as in the recipe, in batches of {BATCH}: four hidden layers of 200, two "
            "classes a task, one draw a step, 100 draws a prediction. Weights: those of layers of "
            f"{', '.join(map(str, setting.sizes.widths))} units.",
            f"A prediction is of {SCORED} images. An evaluation scores every task of its stream, "
            "with 20 draws. Last fifth / first fifth: seconds of the last tasks over those of the "
            "first.",
            "Memory: that of a process of its own which trains every task and scores the last, in "
            f"batches of {PROBED_BATCH}, and of 4 where tasks grow. Peak: above what the process "
            "had before. Held: parameters, gradients, prior and optimiser, counted from tensors.",
            NOTE,
        ],
    )


def _keys(axis: Axis, value: int, sizes: Sizes, batch: int) -> dict[str, Any]:
    return {"batch_size": batch, **sizes.recipe, **TWO_TASKS, **axis.keys(value)}


def _steps(axis: Axis, setting: Setting) -> list[Row]:
    sizes, trainings = setting.sizes, {}
    for value in axis.values(sizes):
        keys = _keys(axis, value, sizes, BATCH)
        images = axis.images(value, sizes.growth_images, setting)
        for method in METHODS:
            training = Training(method, keys, images, setting.device, setting.clock)
            training.fill(sizes.unit_seconds)
            trainings[f"{method} {value}"] = training
    seconds = step_seconds(trainings, setting.repeats, setting.clock)
    bayesian, point = METHODS
    rows = []
    for value in axis.values(sizes):
        steps = {method: seconds[f"{method} {value}"] for method in METHODS}
        size = axis.named(value)
        rows += [row("growth", method, size, SECONDS, of) for method, of in steps.items()]
        to_point = ratios(steps, point)[bayesian]
        rows.append(row("growth", bayesian, size, f"ratio to {point}", to_point))
    return rows


def _predictions(setting: Setting) -> list[Row]:
    """Seconds of a prediction by its draws."""
    sizes, axis = setting.sizes, PREDICTIONS
    images = axis.images(0, sizes.growth_images, setting)
    keys = _keys(axis, 1, sizes, BATCH)
    training = Training(METHODS[0], keys, images, setting.device, setting.clock)
    method, stream = training.strategy.method, training.strategy.tensor_stream
    x, head = stream.inputs(0, "test"), stream.task_label(0)

    def predict(draws: int) -> None:
        method.eval_samples = draws
        method.predict(x, head)

    work = {axis.named(n): partial(predict, n) for n in axis.values(sizes)}
    seconds = seconds_per_call(work, setting.repeats, setting)
    return [
        row("growth", METHODS[0], size, "seconds per prediction", times)
        for size, times in seconds.items()
    ]


def _probes(setting: Setting) -> dict[tuple[str, str], memory.Probe]:
    """What is trained to measure memory, by method and size."""
    sizes, probes = setting.sizes, {}
    for axis in (*STEPS, PREDICTIONS, TASKS):
        for value in axis.values(sizes):
            keys = {**_keys(axis, value, sizes, PROBED_BATCH), "epochs": 2}
            images = axis.images(value, keys["batch_size"], setting)
            for method in METHODS[:1] if axis is PREDICTIONS else METHODS:
                probe = memory.Probe(method, keys, images, setting.device)
                probes[method, axis.named(value)] = probe
    return probes
