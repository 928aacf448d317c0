"""An instance of a method on a stream, with every random number from seeds."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from vcl_radial.conformance.streams import TASKS, Stream
from vcl_radial.errors import Diverged, UserError
from vcl_radial.methods.base import Method
from vcl_radial.methods.registry import find_method
from vcl_radial.methods.tasks import Batch, columns
from vcl_radial.nn import MultiHead
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.system.seeds import seed_of
from vcl_radial.tracks.continual.methods import method_of, optimizer_for
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.training.seeds import Purpose
from vcl_radial.training.source import TensorTask
from vcl_radial.training.trainer import Trainer

T = TypeVar("T")
Rows = Callable[[Tensor], Tensor]
"""Selects rows of a task; a row may be repeated."""


def trial_of(recipe: Recipe, stream: Stream, **settings: Any) -> Trial:
    """A trial of the recipe's method, or of its Avalanche strategy.

    Raises:
        UserError: the method does not support the stream.
    """
    cls: Any = find_method(recipe.strategy)
    if issubclass(cls, Method):
        return Trial(recipe, stream, **settings)
    if stream.settings():
        raise UserError(f"{cls.__name__} is an Avalanche strategy, which serves classes only")
    from vcl_radial.conformance.strategy_trial import StrategyTrial

    return StrategyTrial(recipe, stream, **settings)


class Trial:
    """A method that is made like in a run and trained by the suite's trainer, task by task.

    Args:
        recipe: recipe of the method.
        stream: the tasks.
        training_seed: seed of the batches and weight samples, not of the initial weights.
        epochs: number of epochs of each task, instead of the recipe's.
        halved: whether task 2 has only the first half of its training points.
    """

    HOOK: ClassVar[str] = "end_task"
    """Name of the learner's method that is called at the end of a task."""

    def __init__(
        self,
        recipe: Recipe,
        stream: Stream,
        *,
        training_seed: int = 0,
        epochs: int,
        halved: bool = False,
    ) -> None:
        network = {"network": stream.body or recipe.network}
        self.recipe, self.stream = recipe.model_copy(update={**network, "epochs": epochs}), stream
        self.training_seed = training_seed
        self.tasks = stream.tasks(self.recipe)
        if halved:
            inputs, targets = map(half, self.tasks[1].train)
            self.tasks[1] = dataclasses.replace(self.tasks[1], train=(inputs, targets))
        self.after_epoch: Callable[[], object] = lambda: None
        """Called after every epoch."""
        self._stops, self._left_out = False, 0
        seed(0, 0)
        self.trainer: Any = self._trainer()
        self.method: Method = self.trainer.method

    def _trainer(self) -> Any:
        recipe = self.recipe
        return Trainer(
            method_of(recipe, self.stream.network(recipe), **self.stream.settings()),
            optimizer=optimizer_for(recipe),
            epochs=recipe.epochs,
            schedule=SCHEDULES[recipe.schedule],
            seed=self._seed_of,
            measure=False,
            on_epoch=self._on_epoch,
        )

    def _on_epoch(self, *_: object) -> None:
        self.after_epoch()

    def _seed_of(self, purpose: Purpose, task: int, epoch: int) -> int | None:
        """One seed for each task, as in a run."""
        number = task + self._left_out + 1
        return seed_of(self.training_seed, number) if purpose == "task" else None

    @property
    def learner(self) -> Any:
        """The object that the user's class makes: it has the state, and the hook `HOOK`."""
        return self.method

    @property
    def trainings(self) -> int:
        """Number of trainings: one per task, or one for all tasks together."""
        return 1 if self.method.needs_whole_stream else TASKS

    def train_next(self) -> None:
        """Train on the next task."""
        next(self.trainer.steps([self._task(number) for number in range(TASKS)]))

    def train_second_alone(self) -> None:
        """Train on task 2 as the first task, with its own seed."""
        self._left_out = 1
        next(self.trainer.steps([self._task(1)]))

    def _task(self, number: int) -> TensorTask:
        task, recipe = self.tasks[number], self.recipe
        points, heads = Batch(*task.train, task.head), (task.head,)
        sizes = recipe.batch_size, recipe.drop_last
        return _Task(task.name, points, heads, *sizes, begin=self._begin)

    def _begin(self) -> None:
        if self._stops:
            raise StoppedTraining

    def evaluate(self) -> Tensor:
        """The predictions of all tasks' test inputs."""
        return torch.cat([self._predicted(task) for task in range(TASKS)])

    def score(self, task: int) -> float:
        """The score of the predictions of a task's test targets, in per cent."""
        return self.stream.score(self._predicted(task), self.tasks[task].test[1])

    def _predicted(self, number: int) -> Tensor:
        predicted = self._predict(number)
        if predicted.isnan().any():
            raise Diverged("predictions are not numbers: the weights diverged in training")
        return predicted

    def _predict(self, number: int) -> Tensor:
        task = self.tasks[number]
        prediction = self.method.predict(task.test[0], task.head, number=number)
        return self.stream.predicted(prediction, task.test[1])

    def altered(self) -> str | None:
        """A message about data that the method altered, or None; the trial copies the data."""
        for task, original in zip(self.tasks, self.stream.tasks(self.recipe), strict=True):
            pairs = zip((*task.train, *task.test), (*original.train, *original.test), strict=True)
            if not all(torch.equal(a, b) for a, b in pairs):
                return "inputs or targets were altered: work on a copy, .clone()"
        return None

    def tensors(self) -> dict[str, Tensor]:
        """Copies of all parameters and buffers, and of the likelihood's learned tensors."""
        state = self.method.network.state_dict()
        state |= {f"likelihood.{k}": v for k, v in self.method.likelihood.state_dict().items()}
        return {name: v.detach().clone() for name, v in state.items() if isinstance(v, Tensor)}

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Load parameters and likelihood, but no other state of the past."""
        with torch.no_grad():
            for name, parameter in self.method.network.named_parameters():
                parameter.copy_(tensors[name])
        learned = {k: tensors[f"likelihood.{k}"] for k in self.method.likelihood.state_dict()}
        self.method.likelihood.load_state_dict(learned)

    def head_prefixes(self) -> dict[int, tuple[str, ...]]:
        """The prefixes of the tensor names of each task's heads; empty with one head for all."""
        names: dict[int, tuple[str, ...]] = {}
        for name, module in self.method.network.named_modules():
            if isinstance(module, MultiHead):
                for task in map(int, module.heads):
                    names[task] = (*names.get(task, ()), f"{name}.heads.{task}.")
        return names

    def wrap_hook(self, around: Callable[[Callable[[Any], object], Any], object]) -> None:
        """Call `around(hook, task)` where a task ends, instead of `hook(task)`."""
        end = getattr(self.learner, self.HOOK)
        setattr(self.learner, self.HOOK, lambda task: around(end, task))

    @contextmanager
    def replaced_points(self, rows: Rows, batch: int) -> Iterator[Any]:
        """Give the task in training these rows, in batches of this size, inside the context.

        The context's value is the argument of the hook.
        """
        method, task, points = self.method, self.method.task, self.points
        points = Batch(rows(points.x), rows(points.y), points.task)
        method.task = dataclasses.replace(task, batches=lambda: points.split(batch))
        try:
            yield method.task
        finally:
            method.task = task

    # The methods below work after `begin_next`, without a step.

    def begin_next(self) -> None:
        """Begin the next task, and stop before its first step, in training mode."""
        self._stops = self.method.gradients_are_read = True
        with suppress(StoppedTraining):
            self.train_next()
        self.method.network.train()

    @property
    def points(self) -> Batch:
        """The training points of the task."""
        task = self.method.task
        x, y, labels = columns(task.batches(), self.method.device)
        return Batch(x, y, task.heads[0] if len(task.heads) == 1 else labels)

    def batches(self, size: int, *, drop_last: bool) -> Iterator[Batch]:
        """The points of each step of an epoch with shuffled mini-batches of this size."""
        task = TensorTask("", self.points, batch_size=size, drop_last=drop_last)
        return map(self.method.extend, task.epoch(0))

    def look(self, batch: Batch, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """The result of `look(penalty)`, and the loss of a batch in nats per point.

        `look` is called between forward and backward pass, where training computes the penalty. The
        same seeds are set in each call, so that a penalty that draws is also a function.
        """
        seed(1)
        self._forward(batch)
        seed(drawn_from)
        result = look(self.method.penalty())
        seed(drawn_from)
        return result, self._backward(batch)

    def _forward(self, batch: Batch) -> None:
        self.trainer.loop.optimizer.zero_grad()
        self._outputs = self.method.outputs(batch)

    def _backward(self, batch: Batch) -> float:
        return float(self.method.backward(self.method.loss(batch, self._outputs)))


@dataclasses.dataclass(frozen=True)
class _Task(TensorTask):
    """A task that calls `begin` before its first epoch, after warm-up epochs."""

    begin: Callable[[], object] = lambda: None

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch; warm-up epochs have the last numbers."""
        if number == 0:
            self.begin()
        return super().epoch(number)


class StoppedTraining(Exception):
    """Stops a training before its first step."""


def half(rows: Tensor) -> Tensor:
    """The first half of a task."""
    return rows[: len(rows) // 2]


def seed(*numbers: int) -> None:
    """Seed Python, NumPy and PyTorch on the CPU, where trials compute."""
    state = seed_of(*numbers)
    random.seed(state)
    np.random.seed(state)
    torch.default_generator.manual_seed(state)
