"""Runs of any method: a split is learnt slice by slice and stored after every slice.

Batches, initial weights and schedule are the same as for lanes; see `fit`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from vcl_radial.data.tables import RegressionData
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.methods.tasks import Batch
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.optimizers.schedules import linear_tail
from vcl_radial.runs.training import Step
from vcl_radial.tracks.methods import make_method
from vcl_radial.tracks.networks import network_of_rows
from vcl_radial.tracks.regression.batches import LaneBatches
from vcl_radial.tracks.regression.fit import FINAL_DRAWS
from vcl_radial.tracks.regression.job import derived
from vcl_radial.tracks.regression.lanes import find
from vcl_radial.tracks.regression.results import Scored, Scores, reports
from vcl_radial.tracks.regression.scores import score
from vcl_radial.tracks.regression.sequence import slices
from vcl_radial.tracks.regression.settings import Recipe, Run
from vcl_radial.tracks.regression.training import LaneSplits, by_lane, split_seed
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


class SliceTraining(Scored):
    """A method on one split, slice by slice; all rows at once are one slice.

    Args:
        run: the run to train.
        data: the run's table.
        report: called between steps of the optimiser.

    Raises:
        UserError: the method does not serve this track, or the network.
    """

    def __init__(self, run: Run, data: RegressionData, report: Callable[[Step], None]) -> None:
        super().__init__(run, report)
        validation = run.data.validation if run.evaluate_on == "validation" else None
        self.split = split = LaneSplits(data, [run.seed], validation)
        self.seed = split_seed(run.seed)
        count = run.data.slices or 1
        x, y = split.train.x[0], split.train.y[0]
        whole = Batch(x, y)
        parts = [whole.at(rows) for rows in slices(x, count)] if count > 1 else [whole]
        recipe = run.recipe

        def task(number: int, points: Batch) -> SliceTask:
            seed = self._seed("batches", number)
            return SliceTask(f"slice {number + 1}", points, recipe.batch_size, seed)

        self.source = Slices([task(*part) for part in enumerate(parts)], task(0, whole))
        with seeded_rng(derived(self.seed, "start"), torch.device("cpu")):
            self.method = method_of(run, x.shape[1], data.hidden)
        self.method.eval_seed = derived(self.seed, "prediction")
        self._start = contents(self.method.network.state_dict())
        self.trainer = Trainer(
            self.method,
            optimizer=partial(make_optimizer, recipe),
            steps=recipe.steps * (len(parts) if self.method.needs_whole_stream else 1),
            schedule=linear_tail,
            rates_by="step",
            seed=self._seed_of,
            fit_options=lambda number: {
                "samples": FINAL_DRAWS,
                "seed": self._seed("noise", number),
            },
            measure=False,
            on_step=self._on_step,
        )
        self._steps_done, self._report_steps = 0, reports([self])

    @property
    def slices(self) -> int:
        """The number of slices."""
        return len(self.source.tasks())

    @property
    def slices_done(self) -> int:
        """The number of slices that are learnt."""
        at_once = self.method.needs_whole_stream
        return self.slices * self.trainer.done if at_once else self.trainer.done

    def position(self) -> Step:
        """Number of trainings, one per slice."""
        steps = self.run.recipe.steps * self.slices_done
        return Step(self.trainer.done, "start", epoch=steps, epochs=self.run.steps, at=steps)

    def steps(self) -> Iterator[Step]:
        """Learn and score the remaining slices.

        Raises:
            Diverged: the loss or a score is not a finite number.
        """
        torch.set_flush_denormal(True)
        started = time.perf_counter()
        self._steps_done = self.run.recipe.steps * self.slices_done
        for _ in self.trainer.steps(self.source):
            # All rows at once have the number 0; slices count from 1.
            number = self.slices_done if self.slices > 1 else 0
            self.after = {**self.after, number: self._scores()}
            self.seconds += time.perf_counter() - started
            if (fault := self.fault()) is not None:
                raise fault
            yield self.scored(self.trainer.done)
            started = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        """The trainer's state and the scores so far."""
        return self.trainer.state_dict() | {"after": dict(self.after), "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the result of `state_dict`."""
        self.trainer.load_state_dict(state)
        self.after, self.seconds = state["after"], state["seconds"]

    def kept(self) -> dict[str, Any]:
        """An empty table: no other result is kept."""
        return {}

    def facts(self) -> dict[str, float | None]:
        """Seconds and bytes carried in a sequence."""
        if self.slices > 1 and not self.method.needs_whole_stream:
            self.carried_bytes = carried_bytes(self.method.state_dict(), self._start)
        return super().facts()

    def _on_step(self) -> None:
        self._steps_done += 1
        self._report_steps(self._steps_done)

    def _scores(self) -> Scores:
        mixture: Mixture = self.method.predict(self.split.test.x[0])
        predicted = replace(mixture, mean=mixture.mean.unsqueeze(1))
        (scores,) = by_lane(score(predicted, self.split.test, self.split.y_scale))
        return scores

    def _seed_of(self, purpose: Purpose, number: int, epoch: int) -> int | None:
        """One seed for the training on a slice."""
        return self._seed("training", number) if purpose == "task" else None

    def _seed(self, *purpose: str | int) -> int:
        return derived(self.seed, " ".join(map(str, purpose)))


def method_of(run: Run, inputs: int, hidden: int) -> Method:
    """The recipe's method, with a network of one output.

    Args:
        run: the run of the recipe.
        inputs: number of inputs of the network.
        hidden: units of its hidden layer, if the recipe names none.

    Raises:
        UserError: the method does not serve this track, or the network.
    """
    recipe, lane = run.recipe, find(run.recipe.strategy)
    if lane is not None:
        recipe = recipe.model_copy(update={"options": {**lane.fixed, **recipe.options}})
    return make_method(
        recipe,
        network_of_rows(recipe, inputs, 1, recipe.hidden or [hidden]),
        likelihood=Gaussian(recipe.noise_shape, recipe.noise_rate, recipe.initial_precision),
        eval_samples=recipe.eval_samples,
    )


def make_optimizer(recipe: Recipe, network: nn.Module) -> Optimizer:
    """The recipe's optimiser."""
    make = Adam if recipe.optimizer == "adam" else partial(own_optimizer, recipe.optimizer)
    return make(network.parameters(), recipe.learning_rate)
