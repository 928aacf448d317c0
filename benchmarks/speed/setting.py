"""Settings of all sections: sizes, data and clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from torch.utils.benchmark import timer

from benchmarks.speed.timing import Clock, Table, spread

_PAPER, _TUNED = "paper's recipe", "tuned recipe"
_SMALL = {"hidden": [200], "batch_size": 256, "epochs": 2}

_SIZES: Mapping[str, tuple[Any, Any]] = {  # all, and with --quick
    "repeats": (5, 2),  # rounds that count, unless the command says otherwise
    "unit_seconds": (0.5, 0.02),  # how long a measured unit lasts where it can be chosen
    "train_images": (6000, 6000),  # of each class of the stand-in for Fashion-MNIST
    "test_images": (1000, 1000),
    "recipe": ({}, {}),  # keys of the recipes that differ from baselines/
    "step_batches": ((64, 256, 1024), (1024,)),
    "convolution_batches": ((32, 64), (32,)),
    "convolution_images": (128, 64),  # of each class
    "photographs": ({"data.patients": 160}, {"data.patients": 60}),  # keys of their data
    "peer_epochs": (3, 2),  # of one call of `train()`
    # Methods that are compared with `naive`, which is one of them; None for all there are.
    "methods": (None, ("naive", "gaussian-vcl", "radial-vcl", "ewc", "laplace-diagonal")),
    "method_images": (6000, 512),  # of each class
    "methods_recipe": (_SMALL, {**_SMALL, "hidden": [100]}),
    "prediction_epochs": (20, 2),
    "prediction_seeds": (12, 4),  # of the draws, over which a prediction's spread is taken
    "run": ({}, {"epochs": 1, "eval_samples": 4}),  # keys of whole runs
    "run_recipes": ((_PAPER, _TUNED), (_PAPER,)),
    "run_seeds": (2, 1),
    "growth_images": (1024, 512),  # of each task
    "widths": ((100, 200, 400, 800, 1600), (100, 400)),  # of four hidden layers
    "classes": ((2, 8, 32, 128), (2, 32)),  # of a task
    "draws": ((1, 2, 4, 8, 16), (1, 4)),  # in a training step
    "prediction_draws": ((10, 100, 1000), (10, 100)),
    "tasks": ((5, 20, 100), (2, 10)),
    "task_images": (128, 128),  # of each class in a stream of many tasks
    "group_sizes": ((1_000, 100_000, 10_000_000), (1_000, 100_000)),  # weights D in `kl`
    "regression_steps": (1000, 50),
    "lanes": ((1, 4, 16, 64), (1, 4)),
    "lane_images": (1024, 1024),  # of each class
    # Seeds of runs with and without worker processes, and the keys of their recipe.
    "many_runs": ((4, {"epochs": 60}), (4, {"epochs": 10, "eval_samples": 4})),
}
FULL, QUICK = (
    SimpleNamespace(**{name: sizes[quick] for name, sizes in _SIZES.items()}) for quick in (0, 1)
)


@dataclass(frozen=True)
class Images:
    """The source of training data.

    Attributes:
        dataset: name in a stream's settings.
        folder: the folder to read, or None for the suite's downloads.
        description: description on the page.
    """

    dataset: str
    folder: Path | None
    description: str


@dataclass(frozen=True)
class Setting:
    """The setting of a measurement.

    Attributes:
        sizes: amount to measure: `FULL` or `QUICK`.
        repeats: number of rounds that count.
        images: Fashion-MNIST, or noise of its shape.
        scratch: a folder for temporary files.
        device: "cpu" or "cuda".
    """

    sizes: SimpleNamespace
    repeats: int
    images: Images
    scratch: Path
    device: str = "cpu"

    @property
    def clock(self) -> Clock:
        """The processor time of this process; on a GPU the time until its work is done.

        With one thread and a free core it equals wall time; the time of other processes on the
        core does not count.
        """
        return timer if self.device == "cuda" else time.process_time


class Row(NamedTuple):
    """One number of the result, with its spread over the rounds."""

    section: str
    variant: str
    size: str
    metric: str
    median: float
    low: float
    high: float
    repeats: int


def rows_of(section: str, table: Table, size: str = "") -> list[Row]:
    """The rows of a table, one for each metric and variant."""
    return [
        Row(section, variant, size, metric, *spread(values))
        for metric, by_variant in table.items()
        for variant, values in by_variant.items()
    ]


class Result(NamedTuple):
    """The measurements of a section, and notes on them."""

    rows: list[Row]
    notes: list[str]


@dataclass(frozen=True)
class Record:
    """A section's numbers and their origin.

    Attributes:
        rows: the numbers.
        notes: notes on the numbers.
        command: the command that measured them.
        data: the description of the images.
        environment: result of `vcl_radial.runs.environment.describe`.
    """

    rows: list[Row]
    notes: list[str]
    command: str
    data: str
    environment: Mapping[str, Any]
