"""Runs of any method: a split is learned slice by slice in plain PyTorch, and stored after each.

Batches, initial weights and schedule are those of the lanes; see `fit`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.optim import Adam

from vcl_radial.data.tables import RegressionData
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.methods.loop import TaskLoop, selected
from vcl_radial.methods.tasks import Batch, Task
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
from vcl_radial.tracks.regression.settings import Run
from vcl_radial.tracks.regression.training import LaneSplits, by_lane, split_seed

_CHUNK = 64
"""Steps between two checks of the loss."""

_ROWS = 4096
"""Rows of a batch in a pass over a whole slice."""

_CPU = torch.device("cpu")


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
        self.slices = [whole.at(rows) for rows in slices(x, count)] if count > 1 else [whole]
        with seeded_rng(derived(self.seed, "start"), _CPU):
            self.method = method_of(run, x.shape[1], data.hidden)
        self.method.eval_seed = derived(self.seed, "prediction")
        self.network = self.method.network
        self._start = contents(self.network.state_dict())
        self.done = 0

    def position(self) -> Step:
        """Number of trainings, one per slice."""
        steps = self.run.recipe.steps * self.done
        return Step(self.done, "start", epoch=steps, epochs=self.run.steps, at=steps)

    def steps(self) -> Iterator[Step]:
        """Learn and score the remaining slices."""
        torch.set_flush_denormal(True)
        for number in range(self.done, len(self.slices)):
            started = time.perf_counter()
            self._learn(number)
            # All rows at once have the number 0; slices count from 1.
            place = number + 1 if len(self.slices) > 1 else 0
            self.after = {**self.after, place: self._scores()}
            self.seconds += time.perf_counter() - started
            if (fault := self.fault()) is not None:
                raise fault
            self.done += 1
            yield self.scored(self.done)

    def state_dict(self) -> dict[str, Any]:
        """The method's state and the scores so far."""
        return {
            "method": self.method.state_dict(),
            "done": self.done,
            "after": dict(self.after),
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave."""
        self.method.load_state_dict(state["method"])
        self.done, self.after, self.seconds = state["done"], state["after"], state["seconds"]

    def kept(self) -> dict[str, Any]:
        """Return nothing: no other result is kept."""
        return {}

    def facts(self) -> dict[str, float | None]:
        """Seconds and bytes carried in a sequence."""
        if len(self.slices) > 1:
            self.carried_bytes = carried_bytes(self.method.state_dict(), self._start)
        return super().facts()

    def _learn(self, number: int) -> None:
        """Learn a slice.

        Raises:
            Diverged: the loss stopped being a finite number.
        """
        recipe, report = self.run.recipe, reports([self])
        with seeded_rng(self._seed("training", number), _CPU):
            points = selected(self.method, self.slices[number])
            batches = LaneBatches(
                torch.tensor([len(points.y)]),
                recipe.batch_size,
                [self._generator("batches", number)],
            )
            epoch_steps = math.ceil(len(points.y) / batches.batch_size)
            task = Task(
                number=number,
                points=len(points.y),
                batches=lambda: points.split(_ROWS),
                steps=recipe.steps,
                epochs=max(1, math.ceil(recipe.steps * batches.batch_size / len(points.y))),
                batch_size=batches.batch_size,
                schedule=linear_tail,
            )
            loop = TaskLoop(
                self.method,
                task,
                lambda network: Adam(network.parameters(), lr=recipe.learning_rate),
            )
            loop.warm_up(lambda: map(points.at, batches.take(epoch_steps)[:, 0]))
            for at in range(0, recipe.steps, _CHUNK):
                # Always draw a whole chunk, so that shorter runs draw the start of longer ones.
                for k, rows in enumerate(batches.take(_CHUNK)[: recipe.steps - at, 0], start=at):
                    loop.learn([points.at(rows)], k / recipe.steps)
                loop.check_loss(f"in slice {number + 1}")
                report(number * recipe.steps + min(at + _CHUNK, recipe.steps))
            loop.end(samples=FINAL_DRAWS, seed=self._seed("noise", number))

    def _scores(self) -> Scores:
        mixture: Mixture = self.method.predict(self.split.test.x[0])
        predicted = replace(mixture, mean=mixture.mean.unsqueeze(1))
        (scores,) = by_lane(score(predicted, self.split.test, self.split.y_scale))
        return scores

    def _seed(self, *purpose: str | int) -> int:
        return derived(self.seed, " ".join(map(str, purpose)))

    def _generator(self, *purpose: str | int) -> torch.Generator:
        return torch.Generator().manual_seed(self._seed(*purpose))


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
        kl_weight=recipe.kl_weight,
        train_samples=recipe.train_samples,
        eval_samples=recipe.eval_samples,
        loss_value=False,
    )
