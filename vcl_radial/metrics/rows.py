"""Scores of predictive distributions of numbers, in the target's units: one value per lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vcl_radial.metrics.declared import metric

if TYPE_CHECKING:
    from torch import Tensor

_row_metric = partial(metric, of="rows")


@dataclass(frozen=True)
class Predictions:
    """Predictions of R lanes for their standardised rows, padded to n.

    Attributes:
        log_density: log predictive densities of the targets, `[R, n]`.
        mean: predictive means, `[R, n]`.
        y: targets, `[R, n]`.
        average: function that averages `[R, n]` over each lane's rows, `[R]`.
        scale: size of a standardised unit in original units, `[R]`.
    """

    log_density: Tensor
    mean: Tensor
    y: Tensor
    average: Callable[[Tensor], Tensor]
    scale: Tensor


@_row_metric("log-likelihood (nats)", 2, "higher", "mean log predictive density per row")
def log_likelihood(predicted: Predictions) -> Tensor:
    """Mean log predictive density per row, in nats: 1/n sum_i log p(y_i | x_i)."""
    return predicted.average(predicted.log_density) - predicted.scale.log()


@_row_metric("RMSE", 2, "lower", "root mean squared error of the predictive mean")
def rmse(predicted: Predictions) -> Tensor:
    """Root of the mean squared error of the predictive mean."""
    return predicted.average((predicted.mean - predicted.y).square()).sqrt() * predicted.scale
