"""A method on classes of digits, driven by Avalanche as a run drives it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch import Tensor, nn

from vcl_radial.conformance.trial import TASKS, Rows, Trial, seed
from vcl_radial.data.streams import TensorStream, build_stream, to_avalanche
from vcl_radial.metrics import accuracy
from vcl_radial.strategies.scores import Scores
from vcl_radial.strategies.upkeep import KLUpkeep, Upkeep
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.continual.training import make_strategy

T = TypeVar("T")


@dataclass(frozen=True)
class Digits:
    """Two digits to a task, as tensors and as Avalanche's experiences."""

    tensors: TensorStream
    train: list[Any]
    test: list[Any]


@cache
def digits(heads: str, flatten: bool) -> Digits:
    """The first tasks of split-digits; nothing is downloaded."""
    settings = {"kind": "split", "dataset": "digits", "validation": 0.1}
    tensors = build_stream({**settings, "heads": heads, "flatten": flatten})
    benchmark = to_avalanche(tensors)
    train, test = (list(benchmark.streams[name])[:TASKS] for name in ("train", "test"))
    return Digits(tensors, train, test)


class StrategyTrial(Trial):
    """A method as an Avalanche strategy, or a strategy of a user's own.

    Args:
        recipe: the method.
        heads: "multi" or "single".
        network: in place of the recipe's.
        training_seed: of the batches and the weight samples.
        epochs: of each task, in place of the recipe's.
        upkeep: look at all that a run looks at, and stop as that does, not at the KL alone. The
            checks look closer, and go on to what else there is.
        settings: more of the strategy's, such as `eval_every`.
    """

    HOOK = "consolidate"
    SCORE = "% of task 1 right"
    CHANCE = "chance gives 50"
    ENOUGH = 75.0  # of 71 test inputs: four standard errors above chance

    def __init__(
        self,
        recipe: Recipe,
        *,
        heads: str = "multi",
        network: str | None = None,
        training_seed: int = 0,
        epochs: int,
        upkeep: bool = False,
        **settings: Any,
    ) -> None:
        recipe = recipe.model_copy(update={"epochs": epochs, "network": network or recipe.network})
        self.digits, self.training_seed = digits(heads, recipe.network is None), training_seed
        self.scores, self.watch = Scores(), _Watch()
        # A copy of the data for each trial: what one does to them stays its own fault.
        tensors = self.digits.tensors
        self.data = dataclasses.replace(tensors, x=tensors.x.clone(), y=tensors.y.clone())
        seed(0, 0)
        self.learner = self.strategy = make_strategy(
            recipe,
            make_network(tensors, recipe),
            tensor_stream=self.data,
            device="cpu",
            evaluator=EvaluationPlugin(self.scores, loggers=[]),
            plugins=[self.watch, Upkeep() if upkeep else KLUpkeep()],
            **settings,
        )
        self.method = self.strategy.method

    @property
    def model(self) -> nn.Module:
        """Avalanche's model, around the network."""
        model: nn.Module = self.strategy.model
        return model

    def train(self, tasks: list[int]) -> None:
        """Train on their experiences."""
        experiences = [self.digits.train[task] for task in tasks]
        self.strategy.train(experiences, eval_streams=[self.digits.test])

    def evaluate(self) -> Tensor:
        """The log-predictive of all tasks' test inputs `[n, C]`."""
        return torch.cat([self._predictions(task) for task in range(TASKS)])

    def score(self, task: int) -> float:
        """The accuracy."""
        return float(accuracy(self._predictions(task), self.data.labels(task, "test")))

    def _predictions(self, task: int) -> Tensor:
        self.strategy.eval([self.digits.test[task]])
        assert self.scores.predictions is not None
        return self.scores.predictions

    def altered(self) -> str | None:
        """The stream's tensors, or an evaluation's batch."""
        for name in ("x", "y"):
            if not torch.equal(getattr(self.digits.tensors, name), getattr(self.data, name)):
                return f"tensor_stream.{name} was altered: work on a copy, .clone()"
        if self.watch.altered:
            return "an evaluation altered the inputs or labels of its batches: use a copy"
        return None

    def at_start(self, look: Callable[[], T], rows: Rows | None = None) -> T:
        """Stop training where its first epoch begins."""
        self.done += 1
        experience = self.digits.train[self.done - 1]
        if rows is not None:
            experience = self._cut(rows)
        self.strategy.plugins = [_Look(look), *self.strategy.plugins]
        seed(self.training_seed, self.done)
        try:
            self.strategy.train([experience], eval_streams=[])
        except _Enough as end:
            found: T = end.found
            return found
        raise AssertionError("training had no epoch")

    def _cut(self, rows: Rows) -> Any:
        """An experience of so much of the current task, which the strategy cuts batches from."""
        train = list(self.data.train)
        train[self.done - 1] = rows(train[self.done - 1])
        self.strategy.tensor_stream = cut = dataclasses.replace(self.data, train=tuple(train))
        return to_avalanche(cut).train_stream[self.done - 1]

    @property
    def points(self) -> int:
        """Of the data that the strategy has adapted."""
        return len(self.strategy.adapted_dataset)

    def batches(self, size: int, *, only_full: bool) -> Iterator[int]:
        """Those of the strategy's loader."""
        strategy = self.strategy
        strategy.train_mb_size, strategy.drop_last = size, only_full
        strategy.make_train_dataloader()
        for batch in strategy.dataloader:
            strategy.mbatch = batch
            strategy._unpack_minibatch()
            yield len(strategy.mb_y)

    def look(self, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """As the strategy's `training_epoch` does it."""
        strategy = self.strategy
        seed(1)
        strategy.optimizer.zero_grad()
        strategy.mb_output = strategy.forward()
        seed(drawn_from)
        found = look(strategy.penalty())
        seed(drawn_from)
        strategy.loss = strategy._make_empty_loss() + strategy.criterion()
        strategy.backward()  # in which a method may put back what its forward pass has drawn
        return found, float(strategy.loss.detach())

    @contextmanager
    def given(self, rows: Rows, batch: int) -> Iterator[Any]:
        """Another experience in the strategy, and batches of another size."""
        strategy = self.strategy
        names = (
            *("experience", "adapted_dataset", "tensor_stream", "dataloader"),
            *("train_mb_size", "eval_mb_size"),
        )
        before = {name: getattr(strategy, name) for name in names}
        strategy.experience = self._cut(rows)
        strategy.adapted_dataset = strategy.experience.dataset
        strategy.train_mb_size = strategy.eval_mb_size = batch
        strategy.make_train_dataloader()
        try:
            yield strategy.experience
        finally:
            for name, value in before.items():
                setattr(strategy, name, value)


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
