"""A task sequence for a linear model: sums over points, and points to score on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.methods.bayes_linear import Sums


@dataclass(frozen=True)
class Points:
    """Points with their features and a constant 1.

    Attributes:
        phi: `[n, D]` float32.
        y: classes `[n]` int64, or numbers `[n]`.
    """

    phi: Tensor
    y: Tensor


@dataclass(frozen=True)
class LinearTask:
    """A task for a linear model.

    Attributes:
        sums: sums of the learned points.
        calibration: learned points that calibrate predictions.
        validation: points that are held out.
        test: points to score on.
    """

    sums: Sums
    calibration: Points
    validation: Points
    test: Points


@dataclass(frozen=True)
class LinearStream:
    """A task sequence for a linear model.

    Attributes:
        name: name of the benchmark, and of the table if it has several.
        score: name of its score in `reports.price.scores.SCORES`.
        tasks: the tasks in order.
    """

    name: str
    score: str
    tasks: Sequence[LinearTask]


def unit_vectors(y: Tensor, outputs: int) -> Tensor:
    """Targets `[n, C]` float64: classes as unit vectors, numbers as they are."""
    if y.is_floating_point():
        return y.double()[:, None]
    return torch.nn.functional.one_hot(y, outputs).double()
