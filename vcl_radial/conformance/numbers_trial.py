"""A method on numbers, trained in a loop of plain PyTorch under learned Gaussian noise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import starmap
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from vcl_radial.conformance.trial import TASKS, Rows, Trial, seed
from vcl_radial.data.streams import TensorBatches
from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.base import Method
from vcl_radial.methods.registry import find_method
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.tracks.continual.methods import optimizer_for
from vcl_radial.tracks.continual.settings import Recipe
from vcl_radial.tracks.methods import draws, make_method
from vcl_radial.tracks.networks import posterior_of
from vcl_radial.training.loop import TaskLoop, selected

T = TypeVar("T")
INPUTS, TRAIN, TEST = 8, 288, 72


@cache
def numbers() -> tuple[Tensor, Tensor]:
    """Inputs `[TASKS, n, 8]` and targets y ~ tanh(a . x) + noise `[TASKS, n]`.

    Tasks differ in the mean of the inputs. The first TRAIN points of a task are for training.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(TASKS, TRAIN + TEST, INPUTS, generator=generator)
    x[..., 0] += torch.arange(TASKS)[:, None] - 1
    noise = 0.1 * torch.randn(TASKS, TRAIN + TEST, generator=generator)
    y = (x @ torch.randn(INPUTS, generator=generator)).tanh() + noise
    return x, y / y.std()


class NumbersTrial(Trial):
    """A method with one head of one output.

    Args:
        recipe: recipe of the method.
        training_seed: seed of the batches and the weight samples.
        epochs: number of epochs of each task, instead of the recipe's.
        eval_every: number of epochs between evaluations; 0 for none.

    Raises:
        UserError: the class is an Avalanche strategy, or the method does not support the network or
            the likelihood.
    """

    HOOK = "end_task"
    SCORE = "% of the variance of task 1 explained"
    CHANCE = "its mean gives 0"
    ENOUGH = 10.0  # on 72 test targets; predictions without learning are below 0

    def __init__(
        self,
        recipe: Recipe,
        *,
        training_seed: int = 0,
        epochs: int,
        eval_every: int = 0,
    ) -> None:
        cls: Any = find_method(recipe.strategy)
        if not issubclass(cls, Method):
            raise UserError(f"{cls.__name__} is an Avalanche strategy, which serves classes only")
        self.recipe, self.epochs, self.eval_every = recipe, epochs, eval_every
        self.x, self.y = (tensor.clone() for tensor in numbers())
        self.training_seed = training_seed
        seed(0, 0)
        network = MLP(
            INPUTS,
            1,
            hidden=recipe.hidden,
            multi_head=False,
            posterior=posterior_of(recipe),
            point_heads=recipe.point_heads,
            precision=recipe.precision,
        )
        self.learner = self.method = make_method(
            cast(Any, recipe),
            network,
            likelihood=Gaussian(),
            kl_weight=recipe.kl_weight,
            train_samples=recipe.train_samples,
            eval_samples=recipe.eval_samples if draws(recipe, cls) else 1,
            loss_value=False,
        )

    @property
    def model(self) -> nn.Module:
        """The network."""
        return self.method.network

    def train(self, tasks: list[int]) -> None:
        """Train as in the docstring of `TaskLoop`."""
        self._begin(tasks)
        loop = self.loop
        loop.warm_up(self._epoch)
        for epoch in range(self.epochs):
            loop.learn(self._epoch(), epoch / self.epochs)
            loop.check_loss(f"in epoch {epoch + 1}")
            if self.eval_every and epoch + 1 < self.epochs:
                self.evaluate()
        loop.end()

    def _begin(self, tasks: list[int], rows: Rows = Tensor.clone) -> None:
        """Begin a task with the points of these tasks."""
        size = self.recipe.batch_size
        whole = Batch(*(rows(t[tasks, :TRAIN].flatten(0, 1)) for t in (self.x, self.y)))
        self.data = data = selected(self.method, whole)
        self.loader = self._loader(size, self.recipe.drop_last)
        task = Task(
            number=tasks[0],
            points=self.points,
            batches=lambda: data.split(size),
            steps=self.epochs * len(self.loader),
            epochs=self.epochs,
            batch_size=size,
            schedule=SCHEDULES[self.recipe.schedule],
        )
        self.loop = TaskLoop(self.method, task, optimizer_for(self.recipe))

    def _loader(self, size: int, drop_last: bool) -> TensorBatches:
        x, y, labels = self.data.x, self.data.y, self.data.labels
        return TensorBatches(x, y, labels, size, shuffle=True, drop_last=drop_last)

    def _epoch(self) -> Iterator[Batch]:
        """The batches of an epoch."""
        return starmap(Batch, self.loader)

    def evaluate(self) -> Tensor:
        """The mean and the log density of all tasks' test targets, `[n, 2]`."""
        return torch.cat([self._predictions(task) for task in range(TASKS)])

    def score(self, task: int) -> float:
        """R^2 of the predicted mean, in per cent."""
        y = self.y[task, TRAIN:]
        return 100 * float(1 - (y - self._predictions(task)[:, 0]).square().mean() / y.var())

    def _predictions(self, task: int) -> Tensor:
        mixture = self.method.predict(self.x[task, TRAIN:], number=task)
        density = mixture.log_density(self.y[task, TRAIN:])
        predictions = torch.stack([mixture.mean.mean(0), density], dim=1)
        if not predictions.isfinite().all():
            raise Diverged("predictions are not numbers: the weights diverged in training")
        return predictions

    def altered(self) -> str | None:
        """A message if the inputs or targets were altered."""
        if all(map(torch.equal, numbers(), (self.x, self.y))):
            return None
        return "the batches' inputs or targets were altered: work on a copy, .clone()"

    def at_start(self, look: Callable[[], T], rows: Rows | None = None) -> T:
        """Begin the task and call `look`."""
        self.finished += 1
        self.method.gradients_are_read = True
        seed(self.training_seed, self.finished)
        self._begin(self.steps[self.finished - 1], rows or Tensor.clone)
        return look()

    @property
    def points(self) -> int:
        """Number of points of the current task."""
        return len(self.data.y)

    def batches(self, size: int, *, only_full: bool) -> Iterator[int]:
        """Yield the sizes of a step's batches."""
        for batch in self._loader(size, only_full):
            self.batch = self.method.extend(Batch(*batch))
            yield len(self.batch.y)

    def look(self, look: Callable[[Any], T], drawn_from: int = 2) -> tuple[T, float]:
        """Run `Method.learn` without the step."""
        method = self.method
        seed(1)
        self.loop.optimizer.zero_grad()
        outputs = method.outputs(self.batch)
        seed(drawn_from)
        result = look(method.penalty())
        seed(drawn_from)
        return result, float(method.backward(method.loss(self.batch, outputs)))

    @contextmanager
    def replaced_points(self, rows: Rows, batch: int) -> Iterator[Any]:
        """Replace the current task."""
        method, task = self.method, self.method.task
        points = Batch(*(rows(t[task.number, :TRAIN]) for t in (self.x, self.y)))
        method.task = dataclasses.replace(task, batches=lambda: points.split(batch))
        try:
            yield method.task
        finally:
            method.task = task
