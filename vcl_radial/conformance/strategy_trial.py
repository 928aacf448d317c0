"""A method on classes of digits, trained by Avalanche as in a run."""

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
from vcl_radial.integrations.avalanche.scores import Scores
from vcl_radial.integrations.avalanche.upkeep import Upkeep
from vcl_radial.metrics import accuracy
from vcl_radial.tracks.continual.methods import make_strategy
from vcl_radial.tracks.continual.networks import make_network
from vcl_radial.tracks.continual.settings import Recipe

T = TypeVar("T")


@dataclass(frozen=True)
class Digits:
    """Tasks of two digits each, as tensors and as Avalanche's experiences."""

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
    """A method as an Avalanche strategy, or a user's strategy, with all checks of a run.

    Args:
        recipe: recipe of the method.
        heads: "multi" or "single".
        network: `package.module:function` of a network, instead of the recipe's.
        training_seed: seed of the batches and the weight samples.
        epochs: number of epochs of each task, instead of the recipe's.
        settings: further settings of the strategy, such as `eval_every`.
    """

    HOOK = "consolidate"
    SCORE = "% of task 1 right"
    CHANCE = "chance gives 50"
    ENOUGH = 75.0  # on 71 test inputs: four standard errors above chance

    def __init__(
        self,
        recipe: Recipe,
        *,
        heads: str = "multi",
        network: str | None = None,
        training_seed: int = 0,
        epochs: int,
        **settings: Any,
    ) -> None:
        recipe = recipe.model_copy(update={"epochs": epochs, "network": network or recipe.network})
        self.digits, self.training_seed = digits(heads, recipe.network is None), training_seed
        self.scores, self.watch = Scores(), _Watch()
        # Each trial has a copy of the data, so that it cannot alter the data of another trial.
        tensors = self.digits.tensors
        self.data = dataclasses.replace(tensors, x=tensors.x.clone(), y=tensors.y.clone())
        seed(0, 0)
        self.learner = self.strategy = make_strategy(
            recipe,
            make_network(tensors, recipe),
            tensor_stream=self.data,
            device="cpu",
            evaluator=EvaluationPlugin(self.scores, loggers=[]),
            plugins=[self.watch, Upkeep()],
            **settings,
        )
        self.method = self.strategy.method

    @property
    def model(self) -> nn.Module:
        """Avalanche's model, around the network."""
        model: nn.Module = self.strategy.model
        return model

    def train(self, tasks: list[int]) -> None:
        """Train on the experiences of these tasks."""
        experiences = [self.digits.train[task] for task in tasks]
        self.strategy.train(experiences, eval_streams=[self.digits.test])

    def evaluate(self) -> Tensor:
        """The log-predictive of all tasks' test inputs `[n, C]`."""
        return torch.cat([self._predictions(task) for task in range(TASKS)])

    def score(self, task: int) -> float:
        """Accuracy, in per cent."""
        return float(accuracy(self._predictions(task), self.data.labels(task, "test")))

    def _predictions(self, task: int) -> Tensor:
        self.strategy.eval([self.digits.test[task]])
        assert self.scores.predictions is not None
        return self.scores.predictions

    def altered(self) -> str | None:
        """A message if the stream's tensors or an evaluation's batch were altered."""
        for name in ("x", "y"):
            if not torch.equal(getattr(self.digits.tensors, name), getattr(self.data, name)):
                return f"tensor_stream.{name} was altered: work on a copy, .clone()"
        if self.watch.altered:
            return "an evaluation altered the inputs or labels of its batches: use a copy"
        return None

    def at_start(self, look: Callable[[], T], rows: Rows | None = None) -> T:
        """Call `look` at the start of the first epoch, and stop training there."""
        self.finished += 1
        experience = self.digits.train[self.finished - 1]
        if rows is not None:
            experience = self._cut(rows)
        self.strategy.plugins = [_Look(look), *self.strategy.plugins]
        seed(self.training_seed, self.finished)
        try:
            self.strategy.train([experience], eval_streams=[])
        except _StopTraining as stop:
            result: T = stop.result
            return result
        raise AssertionError("training had no epoch")

    def _cut(self, rows: Rows) -> Any:
        """An experience with these rows of the current task; the strategy cuts its batches."""
        train = list(self.data.train)
        train[self.finished - 1] = rows(train[self.finished - 1])
        self.strategy.tensor_stream = cut = dataclasses.replace(self.data, train=tuple(train))
        return to_avalanche(cut).train_stream[self.finished - 1]

    @property
    def points(self) -> int:
        """Number of points of the strategy's adapted data."""
        return len(self.strategy.adapted_dataset)

    def batches(self, size: int, *, only_full: bool) -> Iterator[int]:
        """Yield the sizes of the batches of the strategy's loader."""
        strategy = self.strategy
        strategy.train_mb_size, strategy.drop_last = size, only_full
        strategy.make_train_dataloader()
        for batch in strategy.dataloader:
            strategy.mbatch = batch
            strategy._unpack_minibatch()
            yield len(strategy.mb_y)

    def look(self, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """Run the passes of the strategy's `training_epoch`."""
        strategy = self.strategy
        seed(1)
        strategy.optimizer.zero_grad()
        strategy.mb_output = strategy.forward()
        seed(drawn_from)
        result = look(strategy.penalty())
        seed(drawn_from)
        strategy.loss = strategy._make_empty_loss() + strategy.criterion()
        strategy.backward()  # a method may undo the draw of the forward pass here
        return result, float(strategy.loss.detach())

    @contextmanager
    def replaced_points(self, rows: Rows, batch: int) -> Iterator[Any]:
        """Replace the strategy's experience and its batch sizes."""
        strategy = self.strategy
        names = (
            *("experience", "adapted_dataset", "tensor_stream", "dataloader"),
            *("train_mb_size", "eval_mb_size"),
        )
        original = {name: getattr(strategy, name) for name in names}
        strategy.experience = self._cut(rows)
        strategy.adapted_dataset = strategy.experience.dataset
        strategy.train_mb_size = strategy.eval_mb_size = batch
        strategy.make_train_dataloader()
        try:
            yield strategy.experience
        finally:
            for name, value in original.items():
                setattr(strategy, name, value)


class _StopTraining(Exception):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


class _Look(SupervisedPlugin):  # type: ignore[misc]
    def __init__(self, look: Callable[[], Any]) -> None:
        super().__init__()
        self.look = look

    def before_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        raise _StopTraining(self.look())

    def after_backward(self, strategy: Any, **kwargs: Any) -> None:
        """Do nothing: a plugin with this hook makes methods compute `.grad`."""


class _Watch(SupervisedPlugin):  # type: ignore[misc]
    """Detect whether evaluation writes to its inputs, which the next evaluation shares."""

    def __init__(self) -> None:
        super().__init__()
        self.altered = False

    def before_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.copies = [tensor.clone() for tensor in strategy.mbatch[:2]]

    def after_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.altered |= not all(map(torch.equal, self.copies, strategy.mbatch))
