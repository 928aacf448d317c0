"""A user's Avalanche strategy on a stream, trained by Avalanche as in a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from avalanche.core import SupervisedPlugin
from torch import Tensor

from vcl_radial.conformance.trial import Rows, StoppedTraining, Trial
from vcl_radial.data.streams import to_avalanche
from vcl_radial.integrations.avalanche.trainer import StrategyTrainer
from vcl_radial.methods.tasks import Batch
from vcl_radial.tracks.continual.methods import make_strategy


class StrategyTrial(Trial):
    """A trial of a user's strategy; Avalanche's loop calls it in training and in evaluation."""

    HOOK = "consolidate"

    def _trainer(self) -> StrategyTrainer:
        recipe, tensors = self.recipe, self.stream.tensors(self.recipe)
        train = list(tensors.train)
        train[1] = train[1][: len(self.tasks[1].train[1])]
        # Each trial has a copy of the data, so that it cannot alter the data of another trial.
        self.tensors_of_tasks = dataclasses.replace(
            tensors, x=tensors.x.clone(), y=tensors.y.clone(), train=tuple(train)
        )
        self.evaluation = _Evaluation()
        self.strategy = make_strategy(
            recipe,
            self.stream.network(recipe),
            tensor_stream=self.tensors_of_tasks,
            plugins=[self.evaluation],
        )
        return StrategyTrainer(
            self.strategy,
            self.tensors_of_tasks,
            lambda task: recipe.epochs,
            self._seed_of,
            self._on_epoch,
            lambda iterations: None,
        )

    @property
    def learner(self) -> Any:
        """The strategy."""
        return self.strategy

    def train_second_alone(self) -> None:
        """Train on task 2, which a new strategy counts as its first, with its own seed."""
        self.trainer.done = 1
        self.train_next()

    def _predict(self, number: int) -> Tensor:
        self.strategy.eval([self.trainer.benchmark.test_stream[number]])
        return torch.cat(self.evaluation.outputs)

    def altered(self) -> str | None:
        """A message if the stream's tensors or an evaluation's batch were altered."""
        original = self.stream.tensors(self.recipe)
        for name in ("x", "y"):
            if not torch.equal(getattr(original, name), getattr(self.tensors_of_tasks, name)):
                return f"tensor_stream.{name} was altered: work on a copy, .clone()"
        if self.evaluation.altered:
            return "an evaluation altered the inputs or labels of its batches: use a copy"
        return None

    @contextmanager
    def replaced_points(self, rows: Rows, batch: int) -> Iterator[Any]:
        """Replace the strategy's experience and its batch sizes."""
        strategy, tensors = self.strategy, self.tensors_of_tasks
        number = strategy.experience.current_experience
        train = list(tensors.train)
        train[number] = rows(train[number])
        cut = dataclasses.replace(tensors, train=tuple(train))
        experience = to_avalanche(cut).train_stream[number]
        replaced = {
            "experience": experience,
            "adapted_dataset": experience.dataset,
            "tensor_stream": cut,
            "dataloader": None,
            "train_mb_size": batch,
            "eval_mb_size": batch,
        }
        original = {name: getattr(strategy, name) for name in replaced}
        vars(strategy).update(replaced)
        strategy.make_train_dataloader()
        try:
            yield experience
        finally:
            vars(strategy).update(original)

    def begin_next(self) -> None:
        """Begin the next task, and stop before its first step."""
        self.strategy.plugins = [_Stop(), *self.strategy.plugins]
        super().begin_next()

    def _forward(self, batch: Batch) -> None:
        strategy = self.strategy
        strategy.mbatch, strategy._task_of_step = [batch.x, batch.y, batch.labels], batch.task
        strategy.optimizer.zero_grad()
        strategy.mb_output = strategy.forward()

    def _backward(self, batch: Batch) -> float:
        strategy = self.strategy
        strategy.loss = strategy._make_empty_loss() + strategy.criterion()
        strategy.backward()  # a method may undo the draw of the forward pass here
        return float(strategy.loss.detach())


class _Stop(SupervisedPlugin):  # type: ignore[misc]
    def before_training_epoch(self, strategy: Any, **kwargs: Any) -> None:
        raise StoppedTraining

    def after_backward(self, strategy: Any, **kwargs: Any) -> None:
        """Do nothing: a plugin with this hook makes methods compute `.grad`."""


class _Evaluation(SupervisedPlugin):  # type: ignore[misc]
    """The outputs of the last evaluation, and whether one wrote to its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.altered = False

    def before_eval(self, strategy: Any, **kwargs: Any) -> None:
        self.outputs: list[Tensor] = []

    def before_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.copies = [tensor.clone() for tensor in strategy.mbatch[:2]]

    def after_eval_iteration(self, strategy: Any, **kwargs: Any) -> None:
        self.outputs.append(strategy.mb_output)
        # The next evaluation shares them.
        self.altered |= not all(map(torch.equal, self.copies, strategy.mbatch))
