"""One instance of a method on the digits, with every random number from seeds."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import Tensor

from vcl_radial.data.streams import TensorStream, build_stream, to_avalanche
from vcl_radial.metrics import accuracy
from vcl_radial.nn import MultiHead
from vcl_radial.strategies.scores import Scores
from vcl_radial.strategies.upkeep import Upkeep
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.continual.training import make_strategy

TASKS = 3
"""A past of one task, of two, and a head that is not trained yet after each of them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Stream:
    """Two digits to a task, as tensors and as Avalanche's experiences."""

    tensors: TensorStream
    train: list[Any]
    test: list[Any]


@cache
def digits(heads: str, validation: float, flatten: bool) -> Stream:
    """The first tasks of split-digits; nothing is downloaded."""
    tensors = build_stream(
        {
            "kind": "split",
            "dataset": "digits",
            "heads": heads,
            "validation": validation,
            "flatten": flatten,
        }
    )
    benchmark = to_avalanche(tensors)
    train, test = (list(benchmark.streams[name])[:TASKS] for name in ("train", "test"))
    return Stream(tensors, train, test)


class Trial:
    """A strategy made from a recipe as a run makes it, and trained step by step.

    Args:
        recipe: the method.
        heads: "multi" or "single".
        training_seed: of the batches and the weight samples; the first weights keep their seed.
        epochs: of each task, in place of the recipe's.
        upkeep: look at the method as a run does, and stop as that does. The checks look closer, and
            go on to what else there is.
        settings: more of the strategy's, such as `eval_every`.
    """

    def __init__(
        self,
        recipe: Recipe,
        heads: str = "multi",
        *,
        training_seed: int = 0,
        epochs: int,
        upkeep: bool = False,
        **settings: Any,
    ) -> None:
        self.flatten = recipe.network is None
        self.digits, self.training_seed, self.done = self.data(heads), training_seed, 0
        self.scores, self.watch = Scores(), _Watch()
        # A copy of the data for each trial: what one does to them stays its own fault.
        tensors = self.digits.tensors
        self.tensors = dataclasses.replace(tensors, x=tensors.x.clone(), y=tensors.y.clone())
        seed(0, 0)
        self.strategy = make_strategy(
            recipe.model_copy(update={"epochs": epochs}),
            make_network(tensors, recipe),
            tensor_stream=self.tensors,
            device="cpu",
            evaluator=EvaluationPlugin(self.scores, loggers=[]),
            plugins=[self.watch, *([Upkeep()] if upkeep else [])],
            **settings,
        )

    def data(self, heads: str, validation: float = 0.1) -> Stream:
        """The digits in the shape that the network takes."""
        return digits(heads, validation, self.flatten)

    @property
    def steps(self) -> list[list[Any]]:
        """What is trained on at a time: a task, or all of them for a method that wants them all."""
        train = self.digits.train
        return [train] if self.strategy.needs_whole_stream else [[task] for task in train]

    def train_next(self) -> None:
        """Train on the next task, with randomness from (seed, task) alone as in a run."""
        self.done += 1
        self.train(self.steps[self.done - 1])

    def train(self, experiences: list[Any]) -> None:
        """Train on these experiences as on the step that was counted last."""
        seed(self.training_seed, self.done)
        self.strategy.train(experiences, eval_streams=[self.digits.test])

    def evaluate(self) -> Tensor:
        """The log-predictive of all tasks' test inputs `[n, C]`."""
        predictions = []
        for experience in self.digits.test:
            self.strategy.eval([experience])
            assert self.scores.predictions is not None
            predictions.append(self.scores.predictions)
        return torch.cat(predictions)

    def accuracy(self, task: int) -> float:
        """The accuracy on a task's test inputs, in per cent."""
        self.strategy.eval([self.digits.test[task]])
        assert self.scores.predictions is not None
        return float(accuracy(self.scores.predictions, self.tensors.labels(task, "test")))

    def tensors_of_model(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers."""
        state = self.strategy.model.state_dict()
        return {name: v.detach().clone() for name, v in state.items() if isinstance(v, Tensor)}

    def names_of_heads(self) -> dict[int, str]:
        """How the names of each head's tensors start, by task; empty with one head for all."""
        return {
            int(task): f"{name}.heads.{task}."
            for name, module in self.strategy.model.named_modules()
            if isinstance(module, MultiHead)
            for task in module.heads
        }

    def at_start_of(self, experience: Any, tensors: TensorStream, look: Callable[[], T]) -> T:
        """Call `look` when all is ready for the first batch of an experience, and end the trial."""
        self.strategy.tensor_stream = tensors
        self.done += 1
        self.strategy.plugins = [_Look(look), *self.strategy.plugins]
        try:
            self.train([experience])
        except _Enough as end:
            found: T = end.found
            return found
        raise AssertionError("training had no epoch")


class _Enough(Exception):
    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found


class _Look(SupervisedPlugin):  # type: ignore[misc]
    def __init__(self, look: Callable[[], Any]) -> None:
        super().__init__()
        self.look = look

    def before_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        raise _Enough(self.look())

    def after_backward(self, strategy: Any, **kwargs: Any) -> None:
        """Never called; it tells a method that makes gradients on demand that they are wanted."""


class _Watch(SupervisedPlugin):  # type: ignore[misc]
    """Sees whether evaluation writes to the inputs, which it shares with the next evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.altered = False

    def before_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.before = [tensor.clone() for tensor in strategy.mbatch[:2]]

    def after_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.altered |= not all(map(torch.equal, self.before, strategy.mbatch))


def seed(*numbers: int) -> None:
    """Seed Python, NumPy and PyTorch on the CPU, where trials compute."""
    (state,) = map(int, np.random.SeedSequence(numbers).generate_state(1))
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


@contextmanager
def own_random_states() -> Iterator[None]:
    """Leave the generators as they were."""
    before = random_states()
    try:
        yield
    finally:
        torch.set_rng_state(before["PyTorch"])
        np.random.set_state(before["NumPy"])
        random.setstate(before["Python"])
