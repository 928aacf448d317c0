"""Time and memory over weights, classes, draws and tasks, and the exponents of both.

One axis grows at a time, from the recipe's network. An axis is a name, its values, and the keys of
the recipe and the stream that a value stands for.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.speed.data import noise
from benchmarks.speed.exponents import NOTE, exponents
from benchmarks.speed.memory import Probe, peaks
from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Images, Result, Row, Setting, rows_of
from benchmarks.speed.timing import Measurement, measure_in_turn, ratios, timed_calls
from benchmarks.speed.training import STEP, TWO_TASKS, Training, number_of_weights

METHODS = ("radial-vcl", "naive")
"""A Bayesian network, and the same with point estimates on the same machinery."""

PICTURES = (Growth("growth", "Cost of a step, a task, an evaluation and a prediction"),)
LAYERS = 4
BATCH, PROBED_BATCH, SCORED = 256, 64, 128
"""Rows of a batch, of a batch where memory is measured, and of the images scored there."""

_PREDICTION = "seconds per prediction"


class Axis(NamedTuple):
    """A growing quantity: its name, its values, and the keys and classes of a value."""

    name: str
    values: str
    keys: Callable[[int], dict[str, Any]]
    classes: Callable[[int], int] = lambda n: 2
    size: Callable[[int], int] = lambda n: n

    def sizes(self, setting: Setting) -> dict[int, str]:
        """The values, and the size of a row for each."""
        return {n: f"{self.name}={self.size(n)}" for n in getattr(setting.sizes, self.values)}

    def keys_of(self, value: int, setting: Setting, batch: int = BATCH) -> dict[str, Any]:
        """The keys of the recipe and the stream for a value."""
        return {"batch_size": batch, **setting.sizes.recipe, **TWO_TASKS, **self.keys(value)}

    def images(self, value: int, rows: int, setting: Setting) -> Images:
        """Random images for a value: at least `rows` training images for each task."""
        tasks, classes = self.keys(value).get("stream.tasks", 2), self.classes(value)
        folder = setting.scratch / f"{self.name}-{value}-{rows}"
        scored = SCORED // (1 if self is PREDICTIONS else tasks) // classes
        return noise(folder, tasks * classes, -(-rows // classes), max(1, scored))


def _weights(width: int) -> int:
    """Weights of a network for 28x28 images with layers of this width and two heads of two."""
    return number_of_weights([*pairwise([784, *[width] * LAYERS, 2])], heads=2)


STEPS = (
    Axis("weights", "widths", lambda n: {"hidden": [n] * LAYERS}, size=_weights),
    Axis("classes", "classes", lambda n: {}, lambda n: n),
    Axis("draws", "draws", lambda n: {"train_samples": n}),
)
PREDICTIONS = Axis("prediction draws", "prediction_draws", lambda n: {"eval_samples": n})
# Few images: they are not to outweigh the network.
_FEW = {"batch_size": 4, "eval_samples": 1}
TASKS = Axis("tasks", "tasks", lambda n: {"stream.tasks": n, **_FEW})


def measure(setting: Setting) -> Result:
    """Seconds and peak memory along each axis, and their exponents."""
    rows = [r for axis in STEPS for r in cost_of_steps(axis, setting)]
    rows += cost_of_predictions(setting)
    rows += cost_of_tasks(setting)
    rows += peaks("growth", probes(setting))
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


def cost_of_steps(axis: Axis, setting: Setting) -> list[Row]:
    """Seconds of a step for each value, and their ratio to those of point estimates."""
    sizes = axis.sizes(setting)
    work: dict[str, Measurement] = {}
    for value in sizes:
        images = axis.images(value, setting.sizes.growth_images, setting)
        for method in METHODS:
            training = Training(method, axis.keys_of(value, setting), images, setting)
            training.fill(setting.sizes.unit_seconds)
            work[f"{method} {value}"] = training.train
    seconds = measure_in_turn(work, setting.repeats)[STEP]
    rows: list[Row] = []
    for value, size in sizes.items():
        steps = {method: seconds[f"{method} {value}"] for method in METHODS}
        table = {STEP: steps, f"ratio to {METHODS[1]}": ratios(steps, METHODS[1])}
        rows += rows_of("growth", table, size)
    return rows


def cost_of_predictions(setting: Setting) -> list[Row]:
    """Seconds of a prediction by its draws."""
    images = PREDICTIONS.images(0, setting.sizes.growth_images, setting)
    training = Training(METHODS[0], PREDICTIONS.keys_of(1, setting), images, setting)
    method, stream = training.strategy.method, training.strategy.tensor_stream
    x, head = stream.inputs(0, "test"), stream.task_label(0)

    def predict(draws: int) -> None:
        method.eval_samples = draws
        method.predict(x, head)

    unit = setting.sizes.unit_seconds
    work = {
        size: timed_calls(partial(predict, n), setting.clock, _PREDICTION, unit)
        for n, size in PREDICTIONS.sizes(setting).items()
    }
    seconds = measure_in_turn(work, setting.repeats)[_PREDICTION]
    return [
        row
        for size, of in seconds.items()
        for row in rows_of("growth", {_PREDICTION: {METHODS[0]: of}}, size)
    ]


def cost_of_tasks(setting: Setting) -> list[Row]:
    """Seconds of a task over the number of tasks; they must not grow with earlier tasks."""
    work: dict[str, Measurement] = {}
    for tasks in setting.sizes.tasks:
        images = noise(setting.scratch / f"{tasks}-tasks", 2 * tasks, setting.sizes.task_images, 16)
        for method in METHODS:
            work[f"{method} {tasks}"] = partial(train_all, method, tasks, images, setting)
    table = measure_in_turn(work, setting.repeats)
    rows: list[Row] = []
    for tasks, size in TASKS.sizes(setting).items():
        measures = {
            metric: {method: by_work[f"{method} {tasks}"] for method in METHODS}
            for metric, by_work in table.items()
        }
        rows += rows_of("growth", measures, size)
    return rows


def train_all(method: str, tasks: int, images: Images, setting: Setting) -> dict[str, float]:
    """Train every task of a new run once, and score all of them at the end.

    The first task does not count: its prior is another family's, and what is used for the first
    time is made then.
    """
    stream = {"stream.tasks": tasks, "stream.validation": 0.0}
    recipe = {"batch_size": 64, "epochs": 2, "eval_samples": 20, **setting.sizes.recipe}
    training = Training(method, {**stream, **recipe}, images, setting)
    moments = [setting.clock()]
    for experience in training.run.train_experiences[1:]:
        training.strategy.train([experience], eval_streams=[])
        moments.append(setting.clock())
    for experience in training.run.eval_experiences:
        training.strategy.eval([experience])
    seconds = [after - before for before, after in pairwise(moments)]
    few = max(1, len(seconds) // 5)
    first, last = statistics.median(seconds[:few]), statistics.median(seconds[-few:])
    return {
        "seconds per task": statistics.median(seconds),
        "last fifth / first fifth": last / first,
        "seconds per evaluation": setting.clock() - moments[-1],
    }


def probes(setting: Setting) -> dict[tuple[str, str], Probe]:
    """The trainings that measure memory, by method and size."""
    all_probes = {}
    for axis in (*STEPS, PREDICTIONS, TASKS):
        for value, size in axis.sizes(setting).items():
            keys = {**axis.keys_of(value, setting, PROBED_BATCH), "epochs": 2}
            images = axis.images(value, keys["batch_size"], setting)
            for method in METHODS[:1] if axis is PREDICTIONS else METHODS:
                all_probes[method, size] = Probe(method, keys, images, setting)
    return all_probes
