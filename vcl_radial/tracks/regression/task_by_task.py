"""Runs of any method: a split is learnt slice by slice, by the trainer of all tracks.

Schedule and batches are as in lanes; see `vcl_radial.training.lanes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.tracks.methods import make_method
from vcl_radial.tracks.networks import network_of_rows
from vcl_radial.tracks.regression.lanes import find
from vcl_radial.tracks.regression.learner import Job, Learner
from vcl_radial.tracks.regression.seeds import derived
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lane_data import LaneBatches, LaneData
from vcl_radial.training.lanes import FINAL_DRAWS
from vcl_radial.training.seeds import Purpose
from vcl_radial.training.source import TaskSource
from vcl_radial.training.trainer import Trainer

_ROWS = 4096
"""Rows of a batch in a pass over a whole slice."""


@dataclass(frozen=True)
class SliceTask:
    """Rows of a table as a task; see `vcl_radial.training.source.TaskData`.

    Batches continue from one random order of the rows into the next, see `LaneBatches`.

    Attributes:
        name: name of the slice.
        points: standardised inputs `[n, d]` and targets `[n]`.
        largest_batch: rows of a batch, if there are as many.
        seed: seed of the orders.
    """

    name: str
    points: Batch
    largest_batch: int
    seed: int
    heads: Sequence[int] = (0,)

    def __len__(self) -> int:
        return len(self.points.y)

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        size: int = self._batches.batch_size
        return size

    @property
    def epoch_steps(self) -> int:
        """Number of batches that hold every row once."""
        return math.ceil(len(self) / self.batch_size)

    def select(self, rows: Tensor) -> SliceTask:
        """The rows with these indices `[n]`, as a task."""
        return replace(self, points=self.points.at(rows))

    def batches(self) -> Iterator[Batch]:
        """Every row once, in order."""
        return self.points.split(_ROWS)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The next batches of an endless sequence."""
        return map(self.points.at, self._batches.take(self.epoch_steps)[:, 0])

    @cached_property
    def _batches(self) -> LaneBatches:
        generator = torch.Generator().manual_seed(self.seed)
        return LaneBatches(torch.tensor([len(self)]), self.largest_batch, [generator])


class Slices(TaskSource):
    """Slices of a table's training rows in their order.

    Args:
        slices: the slices.
        whole: all rows, for a method that needs them at once.
    """

    def __init__(self, slices: Sequence[SliceTask], whole: SliceTask) -> None:
        self._slices, self._whole = slices, whole

    def tasks(self) -> Sequence[SliceTask]:
        """The slices."""
        return self._slices

    def together(self) -> SliceTask:
        """All rows as one task."""
        return self._whole


class TaskByTask(Learner):
    """A method that learns one split slice by slice; all rows at once are one slice.

    Args:
        job: the run.
        whole: all rows, for a method that needs them at once.

    Raises:
        UserError: the method does not serve this track, or the network.
    """

    def __init__(self, job: Job, whole: LaneData) -> None:
        super().__init__(job)
        (self.seed,), recipe = job.seeds, job.recipe

        def task(number: int, data: LaneData) -> SliceTask:
            seed = self._seed("batches", number)
            points = Batch(data.x[0], data.y[0])
            return SliceTask(f"slice {number + 1}", points, recipe.batch_size, seed)

        self.source = Slices([task(*part) for part in enumerate(job.slices)], task(0, whole))
        with seeded_rng(derived(self.seed, "start"), torch.device("cpu")):
            self.method = method_of(recipe, job.x.shape[-1], job.hidden)
        self.method.eval_seed = derived(self.seed, "prediction")
        at_once = self.method.needs_whole_stream
        self.slices_per_step = len(job.slices) if at_once else 1
        self.trainer = Trainer(
            self.method,
            optimizer=partial(make_optimizer, recipe),
            steps=recipe.steps * self.slices_per_step,
            schedule=linear_tail,
            rates_by="step",
            kl_schedule=recipe.kl_schedule,
            seed=self._seed_of,
            fit_options=lambda number: {
                "samples": FINAL_DRAWS,
                "seed": self._seed("noise", number),
            },
            measure=False,
            on_step=self._on_step,
        )
        self._steps = 0

    def trainers(self, lane: int) -> list[Trainer]:
        """The trainer."""
        return [self.trainer]

    def steps(self) -> Iterator[list[int]]:
        """Learn the remaining slices."""
        self._steps = self.job.recipe.steps * self.trainer.done * self.slices_per_step
        for _ in self.trainer.steps(self.source):
            yield [0]

    def predict(self) -> Mixture:
        """The method's predictive."""
        mixture: Mixture = self.method.predict(self.job.x[0])
        return replace(mixture, mean=mixture.mean.unsqueeze(1))

    def _on_step(self) -> None:
        self._steps += 1
        self.job.on_steps(0, self._steps)

    def _seed_of(self, purpose: Purpose, number: int, epoch: int) -> int | None:
        """One seed for the training on a slice."""
        return self._seed("training", number) if purpose == "task" else None

    def _seed(self, *purpose: str | int) -> int:
        return derived(self.seed, " ".join(map(str, purpose)))


def method_of(recipe: Recipe, inputs: int, hidden: Sequence[int]) -> Method:
    """The recipe's method, with a network of one output.

    Args:
        recipe: the recipe.
        inputs: number of inputs of the network.
        hidden: units of its hidden layers.

    Raises:
        UserError: the method does not serve this track, or the network.
    """
    if (lanes := find(recipe.strategy)) is not None:
        recipe = recipe.model_copy(update={"options": {**lanes.fixed, **recipe.options}})
    return make_method(
        recipe,
        network_of_rows(recipe, inputs, 1, hidden),
        likelihood=Gaussian(recipe.noise_shape, recipe.noise_rate, recipe.initial_precision),
        eval_samples=recipe.eval_samples,
    )


def make_optimizer(recipe: Recipe, network: nn.Module) -> Optimizer:
    """The recipe's optimiser."""
    make = Adam if recipe.optimizer == "adam" else partial(own_optimizer, recipe.optimizer)
    return make(network.parameters(), recipe.learning_rate)
