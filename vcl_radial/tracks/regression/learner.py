"""The interface of methods that learn the slices of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.training.lane_data import LaneData


@dataclass(frozen=True)
class Job:
    """Runs of one table to train together, and the inputs to predict.

    It holds no test targets, so that no method can be chosen or trained by them.

    Attributes:
        recipes: recipe of each lane, all of one shape.
        seeds: seed of each lane.
        slices: the standardised training data, slice by slice; one slice for all rows at once.
        x: the standardised inputs of the predictions, `[R, n, d]`.
        hidden: units of the hidden layers.
        on_steps: called with a lane and the steps that are done.
    """

    recipes: Sequence[Recipe]
    seeds: Sequence[int]
    slices: Sequence[LaneData]
    x: Tensor
    hidden: Sequence[int]
    on_steps: Callable[[int, int], None] = lambda lane, steps: None

    @property
    def recipe(self) -> Recipe:
        """The first recipe, for keys that all lanes share."""
        return self.recipes[0]


class Learner(ABC):
    """Runs that learn the slices of a job in turn.

    Args:
        job: the runs.
    """

    slices_per_step = 1
    """Number of slices that are learnt at once."""
    state_predicts = True
    """Whether `predict` needs no more than the states of its trainers."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @abstractmethod
    def trainers(self, lane: int) -> Sequence[Any]:
        """The trainers of a lane's networks: `Trainer` or `LaneRun`."""

    @abstractmethod
    def steps(self) -> Iterator[list[int]]:
        """Learn the remaining slices; yield the lanes that have learnt another one.

        Raises:
            Diverged: the loss stopped being a finite number.
        """

    @abstractmethod
    def predict(self) -> Mixture:
        """The predictive of the lanes of the last step, `[T, R, n]`."""

    def learn(self) -> Mixture:
        """Learn all slices; return the predictive after the last one."""
        for _ in self.steps():
            pass
        return self.predict()

    def done(self, lane: int) -> int:
        """The number of steps that a lane has finished."""
        return int(self.trainers(lane)[0].done)

    def leave_out(self, lane: int) -> None:
        """Stop training a lane."""
        for trainer in self.trainers(lane):
            trainer.left_out = True

    def start(self, lane: int) -> Any:
        """The state of a lane's networks before the first slice."""
        return [trainer.method.network.state_dict() for trainer in self.trainers(lane)]

    def states(self, lane: int) -> Any:
        """What a lane carries to the next slice."""
        return [trainer.states[-1] for trainer in self.trainers(lane)]

    def state_dict(self, lane: int) -> dict[str, Any]:
        """Plain tensors and numbers from which a lane continues."""
        return {"trainers": [trainer.state_dict() for trainer in self.trainers(lane)]}

    def load_state_dict(self, lane: int, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        for trainer, stored in zip(self.trainers(lane), state["trainers"], strict=True):
            trainer.load_state_dict(stored)
