"""An instance of a method on a stream, with every random number from seeds."""

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
"""Number of tasks: the past has one or two tasks, and then one head is not trained yet."""

T = TypeVar("T")
Rows = Callable[[Tensor], Tensor]
"""Selects rows of a task; a row may be repeated."""


class Trial(ABC):
    """A method made from a recipe like in a run, and trained step by step.

    Attributes:
        learner: the method or its strategy: both have `penalty()`, a weight of the penalty,
            `loss_value` and a state.
        method: the method.
        finished: number of finished steps.
        training_seed: seed of the batches and weight samples, not of the initial weights.
    """

    HOOK: ClassVar[str]
    """Name of the learner's method that is called at the end of a task."""
    SCORE: ClassVar[str]
    """Text after the value of `score` in a message."""
    CHANCE: ClassVar[str]
    """Text about the score without learning."""
    ENOUGH: ClassVar[float]
    """Smallest score that is well above chance."""

    learner: Any
    method: Method
    training_seed: int
    finished = 0

    @property
    @abstractmethod
    def model(self) -> nn.Module:
        """The model that is trained."""

    @property
    def steps(self) -> list[list[int]]:
        """The tasks of each training step: one, or all if the method needs the whole stream."""
        tasks = list(range(TASKS))
        return [tasks] if self.learner.needs_whole_stream else [[task] for task in tasks]

    def train_next(self) -> None:
        """Train on the next task, with randomness from (seed, task) alone as in a run."""
        self.finished += 1
        seed(self.training_seed, self.finished)
        self.train(self.steps[self.finished - 1])

    @abstractmethod
    def train(self, tasks: list[int]) -> None:
        """Train on these tasks at once."""

    @abstractmethod
    def evaluate(self) -> Tensor:
        """The predictions of all tasks' test inputs."""

    @abstractmethod
    def score(self, task: int) -> float:
        """The score of the predictions of a task's test targets, in per cent."""

    @abstractmethod
    def altered(self) -> str | None:
        """A message about data that the method altered, or None; the trial copies the data."""

    def tensors(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers, and of the likelihood's learned tensors."""
        state = self.model.state_dict()
        state |= {f"likelihood.{k}": v for k, v in self.method.likelihood.state_dict().items()}
        return {name: v.detach().clone() for name, v in state.items() if isinstance(v, Tensor)}

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Load parameters and likelihood, but no other state of the past."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[name])
        learned = {k: tensors[f"likelihood.{k}"] for k in self.method.likelihood.state_dict()}
        self.method.likelihood.load_state_dict(learned)

    def head_prefixes(self) -> dict[int, tuple[str, ...]]:
        """The prefixes of the tensor names of each task's heads; empty with one head for all."""
        names: dict[int, tuple[str, ...]] = {}
        for name, module in self.model.named_modules():
            if isinstance(module, MultiHead):
                for task in map(int, module.heads):
                    names[task] = (*names.get(task, ()), f"{name}.heads.{task}.")
        return names

    # The methods below work at the start of the next task, before its first step.

    @abstractmethod
    def at_start(self, look: Callable[[], T], rows: Rows | None = None) -> T:
        """Call `look` after the next task, or these rows of it, has begun, and end the trial."""

    @property
    @abstractmethod
    def points(self) -> int:
        """N, the number of training points of the task."""

    @abstractmethod
    def batches(self, size: int, *, only_full: bool) -> Iterator[int]:
        """Make each shuffled mini-batch the current one, and yield its number of points."""

    @abstractmethod
    def look(self, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """The result of `look(penalty)`, and the loss of the current batch in nats per point.

        `look` is called between forward and backward pass, where training computes the penalty.
        """

    @abstractmethod
    def replaced_points(self, rows: Rows, batch: int) -> AbstractContextManager[Any]:
        """Give the task these rows, in batches of this size, inside the context.

        The context's value is the argument of `HOOK`.
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


def same_states(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether generators with these states draw the same numbers."""
    return all(_same(state, b[name]) for name, state in a.items())


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(_same, a, b))
    return torch.equal(a, b) if isinstance(a, Tensor) else np.array_equal(a, b)
