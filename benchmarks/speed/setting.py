"""Sizes, data and clock of all sections, and the rows that they measure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.benchmark import timer

from benchmarks.speed.timing import Clock, Measurement, Table, measure_in_turn, ratios, spread

Keys = Mapping[str, Any]
"""Keys of a recipe or a stream, as for `--set`."""


@dataclass(frozen=True)
class Sizes:
    """The amount to measure; the defaults are for a measurement without `--quick`."""

    repeats: int = 5  # rounds that count, unless the command says otherwise
    unit_seconds: float = 0.5  # how long a measured unit lasts where it can be chosen
    train_images: int = 6000  # of each class of the stand-in for Fashion-MNIST
    test_images: int = 1000
    recipe: Keys = field(default_factory=dict)  # keys of the recipes that differ from baselines/
    step_batches: tuple[int, ...] = (64, 256, 1024)
    convolution_batches: tuple[int, ...] = (32, 64)
    convolution_images: int = 128  # of each class
    patients: int = 160  # of the photographs
    photographs: Keys = field(default_factory=dict)  # keys of their recipes that differ
    methods: tuple[str, ...] = ()  # compared with `naive`, which is one of them; () for all
    method_images: int = 6000  # of each class
    prediction_epochs: int = 20
    prediction_seeds: int = 12  # of the draws, over which a prediction's spread is taken
    run: Keys = field(default_factory=dict)  # keys of whole runs
    run_seeds: int = 2
    growth_images: int = 1024  # of each task
    widths: tuple[int, ...] = (100, 200, 400, 800, 1600)  # of four hidden layers
    draws: tuple[int, ...] = (1, 2, 4, 8, 16)  # in a training step
    tasks: tuple[int, ...] = (5, 20, 100)
    task_images: int = 128  # of each class in a stream of many tasks
    group_sizes: tuple[int, ...] = (1_000, 100_000, 10_000_000)  # weights D in `kl`
    regression_steps: int = 1000
    lanes: tuple[int, ...] = (1, 4, 16, 64)
    lane_images: int = 1024  # of each class


FULL = Sizes()
QUICK = Sizes(
    repeats=2,
    unit_seconds=0.02,
    step_batches=(1024,),
    convolution_batches=(32,),
    patients=60,
    methods=("naive", "gaussian-vcl", "radial-vcl", "ewc", "laplace-diagonal"),
    method_images=512,
    prediction_epochs=2,
    prediction_seeds=4,
    run={"epochs": 1, "eval_samples": 4},
    run_seeds=1,
    widths=(100, 400),
    draws=(1, 4),
    tasks=(2, 10),
    group_sizes=(1_000, 100_000),
    regression_steps=50,
    lanes=(1, 4),
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
        images: the data; for a whole section Fashion-MNIST, or noise of the same shape.
        scratch: a folder for temporary files.
        device: "cpu" or "cuda".
    """

    sizes: Sizes
    repeats: int
    images: Images
    scratch: Path
    device: str = "cpu"

    def on(self, images: Images) -> Setting:
        """The same setting with other data."""
        return replace(self, images=images)

    @property
    def clock(self) -> Clock:
        """The processor time of this process; on a GPU the time until the GPU has finished.

        With one thread and a free core it equals wall time; the time of other processes on the
        core does not count.
        """
        return timer if self.device == "cuda" else time.process_time


class Row(NamedTuple):
    """One number of a section, with its spread over the rounds.

    A size such as "batch=64" has the number on an axis after its equals sign.
    """

    variant: str
    size: str
    metric: str
    median: float
    low: float
    high: float
    repeats: int


def compare(
    work: Mapping[str, Measurement],
    setting: Setting,
    metric: str,
    *,
    reference: str,
    size: str = "",
    warm_up: int = 1,
) -> list[Row]:
    """Measure variants in turn: the rows of a metric, and of its ratio to a reference's."""
    table = measure_in_turn(work, setting.repeats, warm_up)
    ratio = {f"ratio to {reference}": ratios(table[metric], reference)}
    return rows_of({metric: table.pop(metric)} | ratio | table, size)


def rows_of(table: Table, size: str = "") -> list[Row]:
    """The rows of a table, one for each metric and variant."""
    return [
        Row(variant, size, metric, *spread(values))
        for metric, by_variant in table.items()
        for variant, values in by_variant.items()
    ]


@dataclass(frozen=True)
class Record:
    """A section's numbers and their origin.

    Attributes:
        rows: the numbers.
        command: the command that measures them.
        data: the description of the images.
        environment: result of `vcl_radial.runs.environment.describe`, and whether the compiled
            pass (the KL's gradient, Adam, next scale) made the steps.
    """

    rows: list[Row]
    command: str
    data: str
    environment: Mapping[str, Any]
