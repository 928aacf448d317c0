"""The streams on which a method is checked; each is a sequence of three small tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import nn

from vcl_radial.conformance.numbers_trial import NumbersTrial
from vcl_radial.conformance.strategy_trial import StrategyTrial
from vcl_radial.conformance.trial import Trial


@dataclass(frozen=True)
class Stream:
    """Data on which a method is checked.

    Attributes:
        name: name of the data that a method supports if it can be trained on the stream.
        phrase: name of the stream inside a sentence.
        trial: makes a trial of a recipe.
    """

    name: str
    phrase: str
    trial: Callable[..., Trial]


def convolutions(shape: Sequence[int]) -> nn.Module:
    """Features `[B, 128]` of images `[B, 1, 8, 8]`."""
    lower, upper = nn.Conv2d(shape[0], 8, 3), nn.Conv2d(8, 8, 3)
    return nn.Sequential(lower, nn.ReLU(), upper, nn.ReLU(), nn.Flatten())


def norms(shape: Sequence[int]) -> nn.Module:
    """Features `[B, 32]` of images, by a layer and its batch norm."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(math.prod(shape), 32), nn.BatchNorm1d(32), nn.ReLU()
    )


SEVERAL_HEADS = Stream("classes with several heads", "with a head for each task", StrategyTrial)
ONE_HEAD = Stream(
    "classes with one head",
    "with one head for all tasks",
    partial(StrategyTrial, heads="single"),
)
CLASSES = SEVERAL_HEADS, ONE_HEAD
"""The streams that use the recipe's network."""
NUMBERS = Stream("numbers", "on numbers", NumbersTrial)
CONVOLUTIONS = Stream(
    "convolutions",
    "with convolutions",
    partial(StrategyTrial, network=f"{__name__}:{convolutions.__name__}"),
)
NORMS = Stream(
    "batch norms",
    "with a batch norm",
    partial(StrategyTrial, network=f"{__name__}:{norms.__name__}"),
)
STREAMS = SEVERAL_HEADS, ONE_HEAD, NUMBERS, CONVOLUTIONS, NORMS
