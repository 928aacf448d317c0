"""Time and memory over weights, draws and tasks.

Random images of 28x28; time does not depend on what they show. Along an axis all else is as in the
recipe, in batches of 256: four hidden layers of 200, two classes a task, one draw a step. Weights:
those of layers of 100, 200, 400, 800, 1600 units. Last fifth / first fifth: seconds of the last
tasks over those of the first.

Memory: that of a process of its own which trains every task and scores the last, in batches of 64,
and of 4 where tasks grow. Peak: above what the process had before. Held: parameters, gradients,
prior and optimiser, counted from tensors.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.speed.data import noise
from benchmarks.speed.memory import PEAK, Probe, rows_of_probes, train_tasks
from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Keys, Row, Setting, compare
from benchmarks.speed.timing import Measurement
from benchmarks.speed.training import STEP, TWO_TASKS, Training

REFERENCE = "naive"
METHODS = ("radial-vcl", REFERENCE)
"""A Bayesian network, and the same network with point estimates in the same code."""

TASK = "seconds per task"
PICTURES = (Growth("growth", "Cost of a step and of a task", (STEP, TASK, PEAK)),)
BATCH, PROBED_BATCH, SCORED = 256, 64, 128
"""Rows of a batch, of a batch in measurements of memory, and of the images scored there."""


class Axis(NamedTuple):
    """A growing quantity: its name, its values in `Sizes`, and a value's keys and number."""

    name: str
    values: str
    keys: Callable[[int], dict[str, Any]]
    number: Callable[[int], int] = lambda value: value


def weights(width: int) -> int:
    """Weights of a network for 28x28 images with four layers of this width and two heads of two."""
    return 785 * width + 3 * (width + 1) * width + 2 * 2 * (width + 1)


# Few images where tasks grow, so that their memory does not outweigh the network's.
TASKS = Axis("tasks", "tasks", lambda n: {"stream.tasks": n, "batch_size": 4, "eval_samples": 1})
AXES = (
    Axis("weights", "widths", lambda width: {"hidden": [width] * 4}, weights),
    Axis("draws", "draws", lambda n: {"train_samples": n}),
    TASKS,
)


def measure(setting: Setting) -> list[Row]:
    """Seconds and peak memory along each axis."""
    rows: list[Row] = []
    probes: dict[tuple[str, str], Probe] = {}
    for axis in AXES:
        measured, metric = (all_tasks, TASK) if axis is TASKS else (training_step, STEP)
        for value in getattr(setting.sizes, axis.values):
            size = f"{axis.name}={axis.number(value)}"
            keys = {**setting.sizes.recipe, **TWO_TASKS, **axis.keys(value)}
            work = {method: measured(method, keys, setting) for method in METHODS}
            rows += compare(work, setting, metric, reference=REFERENCE, size=size, warm_up=0)
            probes |= {(method, size): probe(method, keys, setting) for method in METHODS}
    return rows + rows_of_probes(probes)


def training_step(method: str, keys: Keys, setting: Setting) -> Measurement:
    """A measurement of the seconds of a training step."""
    setting = setting.on(noise(setting.scratch, 4, setting.sizes.growth_images // 2, 1))
    training = Training(method, {"batch_size": BATCH, **keys}, setting)
    return training.fill(setting.sizes.unit_seconds).step


def all_tasks(method: str, keys: Keys, setting: Setting) -> Measurement:
    """A measurement of the seconds of a task, which must not grow with earlier tasks."""
    keys = {**keys, "batch_size": 64, **setting.sizes.recipe, "epochs": 2}
    return partial(train_all, method, keys, setting)


def train_all(method: str, keys: Keys, setting: Setting) -> dict[str, float]:
    """Train every task of a new run once.

    The first task does not count: its prior belongs to another family, and objects are made on
    their first use.
    """
    tasks = keys["stream.tasks"]
    images = noise(setting.scratch, 2 * tasks, setting.sizes.task_images, 1)
    training = Training(method, keys, setting.on(images))
    moments = [setting.clock()]
    for number in range(1, tasks):
        training.train_task(number)
        moments.append(setting.clock())
    seconds = [after - before for before, after in pairwise(moments)]
    few = max(1, len(seconds) // 5)
    first, last = statistics.median(seconds[:few]), statistics.median(seconds[-few:])
    return {TASK: statistics.median(seconds), "last fifth / first fifth": last / first}


def probe(method: str, keys: Keys, setting: Setting) -> Probe:
    """A training whose memory is measured, on as few images as its batches need."""
    keys = {"batch_size": PROBED_BATCH, **keys, "epochs": 2}
    tasks, rows = keys["stream.tasks"], -(-keys["batch_size"] // 2)
    images = noise(setting.scratch, 2 * tasks, rows, max(1, SCORED // tasks // 2))
    return partial(train_tasks, method, keys, setting.on(images))
