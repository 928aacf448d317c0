"""Kept models: bytes on disk, and seconds to load, to predict and to learn one more task.

The models after four tasks of split FashionMNIST, one epoch each, with a head for each task; the
exact posterior of `bayes-linear` has one head. `predict`: `model.predict` of 10,000 images, with
the recipe's weight samples. `update`: `vr.update` by the fifth task for one epoch, from reading
the task's file to the new run, which is scored on all tasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import vcl_radial as vr
from benchmarks.speed.pictures import Ratios
from benchmarks.speed.setting import Row, Setting, compare, rows_of
from benchmarks.speed.timing import timed
from benchmarks.speed.training import BENCHMARK
from vcl_radial.data.streams import load_dataset
from vcl_radial.models.format import CARD, TENSORS
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.runner import perform

METHODS = {
    "gaussian-vcl": BENCHMARK,
    "radial-vcl": BENCHMARK,
    "ewc": BENCHMARK,
    "laplace-kronecker": BENCHMARK,
    "bayes-linear": BENCHMARK.replace("multi", "single"),
}
REFERENCE = "gaussian-vcl"
PREDICTED = 10_000
SIZE, SECONDS, RATIO = "on disk (MB)", "seconds", f"ratio to {REFERENCE}"
PICTURES = (Ratios("models", f"Load a model, predict, learn one more task: {RATIO}", RATIO),)


def measure(setting: Setting) -> list[Row]:
    """Megabytes of a model, and seconds of the three calls, by method."""
    folders = {method: _trained(method, setting) for method in METHODS}
    x = load_dataset(setting.images.dataset, setting.images.folder).test_x[:PREDICTED]
    models = {method: vr.load(folder) for method, folder in folders.items()}
    calls: dict[str, Callable[[str], object]] = {
        "load": lambda method: vr.load(folders[method]),
        f"predict {len(x):,}": lambda method: models[method].predict(x, 0),
        "update": _updates(folders, setting),
    }
    megabytes = {
        method: [sum((folder / name).stat().st_size for name in (CARD, TENSORS)) / 1e6]
        for method, folder in folders.items()
    }
    rows = rows_of({SIZE: megabytes})
    for name, call in calls.items():
        work = {method: timed(partial(call, method), setting.clock) for method in METHODS}
        rows += compare(work, setting, SECONDS, reference=REFERENCE, size=name)
    return rows


def _trained(method: str, setting: Setting) -> Path:
    """The folder of a run of four tasks."""
    images = setting.images
    keys = {"epochs": 1, **setting.sizes.recipe, "stream.first_tasks": 4}
    (run,) = plan(METHODS[method], [method], [0], {**keys, "stream.dataset": images.dataset})
    run = run.on_data(images.folder)
    context = RunContext(setting.scratch / "models", images.folder)
    perform([run], context, 1, 1)
    return RunFolder(context.out, run).path


def _updates(folders: dict[str, Path], setting: Setting) -> Callable[[str], object]:
    """A function that updates the model of a method by the fifth task, into a new folder."""
    images = setting.images
    data = load_dataset(images.dataset, images.folder)
    parts = {"": (data.train_x, data.train_y), "_test": (data.test_x, data.test_y)}
    arrays: dict[str, Any] = {}
    for part, (x, y) in parts.items():
        arrays |= {f"x{part}": x[y >= 8].numpy(), f"y{part}": y[y >= 8].numpy()}
    task = setting.scratch / "fifth.npz"
    np.savez(task, **arrays)
    numbers = itertools.count()

    def update(method: str) -> object:
        out = setting.scratch / f"updated-{next(numbers)}"
        return vr.update(
            folders[method],
            task,
            settings={"epochs": 1},
            out=out,
            device="cpu",
            data_dir=images.folder,
        )

    return update
