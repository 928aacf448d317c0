"""The streams on which a method is checked; each is a sequence of three small tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vcl_radial.data.streams import TensorStream, build_stream
from vcl_radial.data.streams.tensors import TaskData
from vcl_radial.likelihoods import Gaussian
from vcl_radial.metrics import accuracy
from vcl_radial.tracks.continual.networks import make_network, mlp_of
from vcl_radial.tracks.continual.settings import Recipe

TASKS = 3
"""Number of tasks: the past has one or two tasks, and then one head is not trained yet."""


@dataclass(frozen=True)
class Stream:
    """Data on which a method is checked: tasks of two digits each. Nothing is downloaded.

    Attributes:
        name: name of the data that a method supports if it can be trained on the stream.
        phrase: name of the stream inside a sentence.
        body: `package.module:function` of a network, instead of the recipe's.
        heads: "multi" or "single".
    """

    name: str
    phrase: str
    body: str | None = None
    heads: str = "multi"

    SCORE: ClassVar[str] = "% of task 1 right"
    """Text after the value of `score` in a message."""
    CHANCE: ClassVar[str] = "chance gives 50"
    """Text about the score without learning."""
    ENOUGH: ClassVar[float] = 75.0  # on 71 test inputs: four standard errors above chance
    """Smallest score that is well above chance."""

    def tensors(self, recipe: Recipe) -> TensorStream:
        """The tasks as rows of whole tensors."""
        return _digits(self.heads, recipe.network is None)

    def tasks(self, recipe: Recipe) -> list[TaskData]:
        """New copies of the tasks."""
        return list(self.tensors(recipe))

    def network(self, recipe: Recipe) -> nn.Module:
        """A network of the recipe, as in a run."""
        return make_network(self.tensors(recipe), recipe)

    def settings(self) -> dict[str, Any]:
        """Settings of the method that replace the recipe's."""
        return {}

    def predicted(self, prediction: Any, targets: Tensor) -> Tensor:
        """A prediction of `Method.predict` as numbers `[n, ...]`, here the log-predictive."""
        numbers: Tensor = prediction
        return numbers

    def score(self, predicted: Tensor, targets: Tensor) -> float:
        """The score of the numbers of `predicted`, in per cent; here the accuracy."""
        return float(accuracy(predicted, targets))


@cache
def _digits(heads: str, flatten: bool) -> TensorStream:
    settings = {"kind": "split", "dataset": "digits", "validation": 0.1}
    return build_stream({**settings, "heads": heads, "flatten": flatten}).first(TASKS)


INPUTS, TRAIN, TEST = 8, 288, 72


@dataclass(frozen=True)
class Numbers(Stream):
    """One output under learned Gaussian noise, y ~ tanh(a . x) + noise.

    Tasks differ in the mean of the inputs.
    """

    SCORE = "% of the variance of task 1 explained"
    CHANCE = "its mean gives 0"
    ENOUGH = 10.0  # on 72 test targets; predictions without learning are below 0

    def tasks(self, recipe: Recipe) -> list[TaskData]:
        """New copies of the tasks."""
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(TASKS, TRAIN + TEST, INPUTS, generator=generator)
        x[..., 0] += torch.arange(TASKS)[:, None] - 1
        noise = 0.1 * torch.randn(TASKS, TRAIN + TEST, generator=generator)
        y = (x @ torch.randn(INPUTS, generator=generator)).tanh() + noise
        y = y / y.std()
        parts = slice(TRAIN), slice(0), slice(TRAIN, None)
        return [
            TaskData(f"task {task + 1}", 0, (), *((x[task, part], y[task, part]) for part in parts))
            for task in range(TASKS)
        ]

    def network(self, recipe: Recipe) -> nn.Module:
        """A network with one output."""
        return mlp_of(recipe, INPUTS, 1, multi_head=False)

    def settings(self) -> dict[str, Any]:
        """Gaussian noise, whose precision is learned."""
        return {"likelihood": Gaussian()}

    def predicted(self, prediction: Any, targets: Tensor) -> Tensor:
        """The mean and the log density of the targets, `[n, 2]`."""
        return torch.stack([prediction.mean.mean(0), prediction.log_density(targets)], dim=1)

    def score(self, predicted: Tensor, targets: Tensor) -> float:
        """R^2 of the mean."""
        return 100 * float(1 - (targets - predicted[:, 0]).square().mean() / targets.var())


def convolutions(shape: Sequence[int]) -> nn.Module:
    """Features `[B, 128]` of images `[B, 1, 8, 8]`."""
    lower, upper = nn.Conv2d(shape[0], 8, 3), nn.Conv2d(8, 8, 3)
    return nn.Sequential(lower, nn.ReLU(), upper, nn.ReLU(), nn.Flatten())


def norms(shape: Sequence[int]) -> nn.Module:
    """Features `[B, 32]` of images, by a layer and its batch norm."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(math.prod(shape), 32), nn.BatchNorm1d(32), nn.ReLU()
    )


SEVERAL_HEADS = Stream("classes with several heads", "with a head for each task")
ONE_HEAD = Stream("classes with one head", "with one head for all tasks", heads="single")
CLASSES = SEVERAL_HEADS, ONE_HEAD
"""The streams that use the recipe's network."""
NUMBERS = Numbers("numbers", "on numbers")
CONVOLUTIONS = Stream("convolutions", "with convolutions", f"{__name__}:{convolutions.__name__}")
NORMS = Stream("batch norms", "with a batch norm", f"{__name__}:{norms.__name__}")
STREAMS = SEVERAL_HEADS, ONE_HEAD, NUMBERS, CONVOLUTIONS, NORMS
