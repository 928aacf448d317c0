"""One instance of a method on a stream, with every random number from seeds."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from vcl_radial.methods.base import Method
from vcl_radial.nn import MultiHead
from vcl_radial.system.seeds import seed_of

TASKS = 3
"""A past of one task, of two, and a head that is not trained yet after each of them."""

T = TypeVar("T")
Rows = Callable[[Tensor], Tensor]
"""Which rows of a task are taken, and how often."""


class Trial(ABC):
    """A method made from a recipe as a run makes it, and trained step by step.

    Attributes:
        learner: the method, or the strategy that drives it: both have `penalty()`, its weight,
            `loss_value` and a state.
        method: the method.
        done: steps so far.
        training_seed: of the batches and the weight samples; the first weights keep their seed.
    """

    HOOK: ClassVar[str]
    """What the learner is called with where a task ends."""
    SCORE: ClassVar[str]
    """What `score` gives, in words."""
    CHANCE: ClassVar[str]
    """What it is without learning, in words."""
    ENOUGH: ClassVar[float]
    """What it is well above that."""

    learner: Any
    method: Method
    training_seed: int
    done = 0

    @property
    @abstractmethod
    def model(self) -> nn.Module:
        """What is trained."""

    @property
    def steps(self) -> list[list[int]]:
        """The tasks that are trained at a time: one, or all for a method that wants them all."""
        tasks = list(range(TASKS))
        return [tasks] if self.learner.needs_whole_stream else [[task] for task in tasks]

    def train_next(self) -> None:
        """Train on the next task, with randomness from (seed, task) alone as in a run."""
        self.done += 1
        seed(self.training_seed, self.done)
        self.train(self.steps[self.done - 1])

    @abstractmethod
    def train(self, tasks: list[int]) -> None:
        """Train on these tasks at once."""

    @abstractmethod
    def evaluate(self) -> Tensor:
        """What is predicted of all tasks' test inputs."""

    @abstractmethod
    def score(self, task: int) -> float:
        """How well a task's test targets are predicted, in per cent."""

    @abstractmethod
    def altered(self) -> str | None:
        """What has been written to of the data, in words; the trial has a copy of them."""

    def tensors(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers, and of what the likelihood has learned."""
        state = self.model.state_dict()
        state |= {f"likelihood.{k}": v for k, v in self.method.likelihood.state_dict().items()}
        return {name: v.detach().clone() for name, v in state.items() if isinstance(v, Tensor)}

    def take_over(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over parameters and likelihood, and nothing else that a past has left."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[name])
        learned = {k: tensors[f"likelihood.{k}"] for k in self.method.likelihood.state_dict()}
        self.method.likelihood.load_state_dict(learned)

    def names_of_heads(self) -> dict[int, tuple[str, ...]]:
        """How the names of the tensors of a task's heads start; empty with one head for all."""
        names: dict[int, tuple[str, ...]] = {}
        for name, module in self.model.named_modules():
            if isinstance(module, MultiHead):
                for task in map(int, module.heads):
                    names[task] = (*names.get(task, ()), f"{name}.heads.{task}.")
        return names

    # At the start of the next task, before its first step.

    @abstractmethod
    def at_start(self, look: Callable[[], T], rows: Rows | None = None) -> T:
        """Call `look` when the next task, or so much of it, has begun, and end the trial there."""

    @property
    @abstractmethod
    def points(self) -> int:
        """N, the training points of the task."""

    @abstractmethod
    def batches(self, size: int, *, only_full: bool) -> Iterator[int]:
        """Make one shuffled mini-batch after another the current one, and yield its points."""

    @abstractmethod
    def look(self, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """What `look` gives of the penalty, and the loss of the current batch, nats per point.

        It is called where training asks for the penalty: between forward and backward pass.
        """

    @abstractmethod
    def given(self, rows: Rows, batch: int) -> AbstractContextManager[Any]:
        """Inside, all is as if the task had these rows, in batches of this size.

        Gives what `HOOK` is called with.
        """


def seed(*numbers: int) -> None:
    """Seed Python, NumPy and PyTorch on the CPU, where trials compute."""
    state = seed_of(*numbers)
    random.seed(state)
    np.random.seed(state)
    torch.default_generator.manual_seed(state)


def random_states() -> Mapping[str, Any]:
    """The states of the generators that a method may draw from."""
    return {
        "PyTorch": torch.get_rng_state(),
        "NumPy": np.random.get_state(),
        "Python": random.getstate(),
    }


def same_states(some: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether the generators would go on to the same numbers."""
    return all(_same(state, others[name]) for name, state in some.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(_same, a, b))
    return torch.equal(a, b) if isinstance(a, Tensor) else np.array_equal(a, b)
