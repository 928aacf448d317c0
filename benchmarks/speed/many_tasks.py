"""Tasks by the hundred: the time of one must not grow with how many came before."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.speed.data import noise
from benchmarks.speed.setting import Images, Row, Setting, row
from benchmarks.speed.timing import rounds
from benchmarks.speed.training import Training

_CLASSES_PER_TASK = 2
_BATCH, _SCORED, _DRAWS = 64, 16, 20
"""Rows of a batch, and images of a class that are scored, with so many draws."""


def cost_of_tasks(methods: Sequence[str], setting: Setting) -> list[Row]:
    """Seconds per task, those of the last tasks over those of the first, and of an evaluation.

    The first task is left out: its prior is another family's, and what is used for the first time
    is made then.
    """
    sizes = setting.sizes
    streams = {
        tasks: noise(
            setting.scratch / f"{tasks}-tasks",
            _CLASSES_PER_TASK * tasks,
            sizes.task_images,
            _SCORED,
        )
        for tasks in sizes.tasks
    }
    variants = {f"{m} {tasks}": (m, tasks) for tasks in streams for m in methods}
    measured: dict[str, dict[str, list[float]]] = {name: {} for name in variants}
    for name in rounds(variants, setting.repeats):
        method, tasks = variants[name]
        for metric, value in train_all(method, tasks, streams[tasks], setting).items():
            measured[name].setdefault(metric, []).append(value)
    return [
        row("growth", method, f"tasks={tasks}", metric, values)
        for name, (method, tasks) in variants.items()
        for metric, values in measured[name].items()
    ]


def train_all(method: str, tasks: int, images: Images, setting: Setting) -> dict[str, float]:
    """Train every task of a new run once, and score all of them at the end."""
    keys: dict[str, Any] = {"stream.tasks": tasks, "stream.validation": 0.0, "batch_size": _BATCH}
    keys |= {"epochs": setting.sizes.task_epochs, "eval_samples": _DRAWS, **setting.sizes.recipe}
    training = Training(method, keys, images, setting.device, setting.clock)
    seconds = []
    for experience in training.run.train_experiences[1:]:
        started = setting.clock()
        training.strategy.train([experience], eval_streams=[])
        seconds.append(setting.clock() - started)
    started = setting.clock()
    for experience in training.run.eval_experiences:
        training.strategy.eval([experience])
    few = max(1, len(seconds) // 5)
    return {
        "seconds per task": statistics.median(seconds),
        "last fifth / first fifth": statistics.median(seconds[-few:])
        / statistics.median(seconds[:few]),
        "seconds per evaluation": setting.clock() - started,
    }
