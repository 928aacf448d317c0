"""What all sections share: how much to measure, on which data, and by which clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.speed.timing import Clock, spread


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        repeats: rounds that count, unless the command says otherwise.
        epochs: of the training in `prediction`.
        peer_epochs: of one call of `train()` in `peers`.
        unit_seconds: how long a measured unit should last where it can be chosen.
        step_batches: rows of a batch in `step`.
        convolution_batches: images of a batch in `convolutions`.
        convolution_images: training images of each class there.
        photographs: keys of the drawn photographs there, and of what trains on them.
        train_images: of each class of the synthetic stand-in for Fashion-MNIST.
        test_images: likewise.
        recipe: keys of the recipes that are not as in `baselines/`.
        methods: that are held against `naive`, itself among them; None for all there are.
        method_images: training images of each class there.
        methods_recipe: keys of their recipes, whatever `baselines/` says.
        run: those of the whole runs that are not as in `baselines/`.
        run_recipes: of the whole runs; names of `benchmarks.speed.run.RECIPES`.
        run_seeds: of a whole run.
        prediction_seeds: of the draws, over which the spread of a prediction is taken.
        growth_images: training images of each task in `growth`.
        widths: units of each of four hidden layers.
        classes: of a task.
        draws: of the weights in a training step.
        prediction_draws: of the weights in a prediction.
        tasks: numbers of tasks.
        task_images: training images of each class in a stream of many tasks.
        task_epochs: epochs of each of many tasks.
        group_sizes: numbers of weights D in `kl`.
        regression_steps: of the networks in `regression`.
        lanes: numbers of lanes; the first is 1.
        lane_images: training images of each class in `lanes`.
        many_runs: runs that are carried out with and without worker processes: by the name of
            their network in `lanes` how many seeds, and what differs from their recipe.
    """

    repeats: int = 5
    epochs: int = 20
    peer_epochs: int = 3
    unit_seconds: float = 0.5
    step_batches: tuple[int, ...] = (64, 256, 1024)
    convolution_batches: tuple[int, ...] = (32, 64)
    convolution_images: int = 128
    photographs: Mapping[str, Any] = field(default_factory=lambda: {"data.patients": 160})
    train_images: int = 6000
    test_images: int = 1000
    recipe: Mapping[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] | None = None
    method_images: int = 6000
    methods_recipe: Mapping[str, Any] = field(
        default_factory=lambda: {"hidden": [200], "batch_size": 256, "epochs": 2}
    )
    run: Mapping[str, Any] = field(default_factory=dict)
    run_recipes: tuple[str, ...] = ("paper's recipe", "tuned recipe")
    run_seeds: int = 2
    prediction_seeds: int = 12
    growth_images: int = 1024
    widths: tuple[int, ...] = (100, 200, 400, 800, 1600)
    classes: tuple[int, ...] = (2, 8, 32, 128)
    draws: tuple[int, ...] = (1, 2, 4, 8, 16)
    prediction_draws: tuple[int, ...] = (10, 100, 1000)
    tasks: tuple[int, ...] = (5, 20, 100)
    task_images: int = 128
    task_epochs: int = 2
    group_sizes: tuple[int, ...] = (1_000, 100_000, 10_000_000)
    regression_steps: int = 1000
    lanes: tuple[int, ...] = (1, 4, 16, 64)
    lane_images: int = 1024
    many_runs: Mapping[str, tuple[int, Mapping[str, Any]]] = field(
        default_factory=lambda: {
            "small network": (4, {"epochs": 60}),
        }
    )


FULL = Sizes()

QUICK = Sizes(
    repeats=2,
    epochs=2,
    peer_epochs=2,
    unit_seconds=0.02,
    step_batches=(1024,),
    convolution_batches=(32,),
    convolution_images=64,
    photographs={"data.patients": 60},
    methods=("naive", "gaussian-vcl", "radial-vcl", "ewc", "laplace-diagonal"),
    method_images=512,
    methods_recipe={"hidden": [100], "batch_size": 256, "epochs": 2},
    run={"epochs": 1, "eval_samples": 4},
    run_recipes=("paper's recipe",),
    run_seeds=1,
    prediction_seeds=4,
    growth_images=512,
    widths=(100, 400),
    classes=(2, 32),
    draws=(1, 4),
    prediction_draws=(10, 100),
    tasks=(2, 10),
    task_images=128,
    task_epochs=2,
    group_sizes=(1_000, 100_000),
    regression_steps=50,
    lanes=(1, 4),
    lane_images=1024,
    many_runs={"small network": (4, {"epochs": 10, "eval_samples": 4})},
)
"""A coarse look in some minutes."""


@dataclass(frozen=True)
class Images:
    """Where training data come from.

    Attributes:
        dataset: their name in a stream's settings.
        folder: the folder to read, or None for where the suite keeps its downloads.
        description: in words, for whoever reads the result.
    """

    dataset: str
    folder: Path | None
    description: str


@dataclass(frozen=True)
class Setting:
    """What a section is measured with.

    Attributes:
        sizes: how much to measure.
        repeats: rounds that count.
        images: Fashion-MNIST, or what stands in for it.
        scratch: a folder for temporary files.
        device: "cpu" or "cuda".
    """

    sizes: Sizes
    repeats: int
    images: Images
    scratch: Path
    device: str = "cpu"

    @property
    def clock(self) -> Clock:
        """The processor time of this process; on a GPU the time until its work is done.

        With one thread and a core of its own a process spends what the wall clock shows, and where
        others want the core too, their time does not count.
        """
        return _finished_on_gpu if self.device == "cuda" else time.process_time


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


def row(section: str, variant: str, size: str, metric: str, values: Sequence[float]) -> Row:
    """The row of some values of one metric."""
    return Row(section, variant, size, metric, *spread(values))


def rows_of(section: str, values: Mapping[str, Sequence[float]], metric: str) -> list[Row]:
    """The rows of one metric, one for each variant."""
    return [row(section, variant, "", metric, of) for variant, of in values.items()]


class Result(NamedTuple):
    """What a section has measured, and what has to be said beside it."""

    rows: list[Row]
    notes: list[str]


@dataclass(frozen=True)
class Record:
    """A section's numbers and where they come from.

    Attributes:
        rows: the numbers.
        notes: what has to be said beside them.
        command: what was typed.
        data: the images, in words.
        environment: as `vcl_radial.runs.environment.describe` gives it.
    """

    rows: list[Row]
    notes: list[str]
    command: str
    data: str
    environment: Mapping[str, Any]


def _finished_on_gpu() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()
