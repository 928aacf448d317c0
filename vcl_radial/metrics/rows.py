"""Scores of predictive distributions of numbers, in the target's units: one value per lane."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from vcl_radial.metrics.declared import metric

if TYPE_CHECKING:
    from torch import Tensor

_row_metric = partial(metric, of="rows")
_interval_metric = partial(metric, of="intervals")

ANSWERED = 0.8
"""The share of the rows that are answered: those with the smallest predictive spread."""


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


@dataclass(frozen=True)
class Intervals:
    """Predictions of n rows with 90 % intervals, in the target's units; all `[n]`.

    Attributes:
        y: targets.
        mean: predictive means.
        spread: predictive standard deviations.
        lower: lower ends of the model's intervals.
        upper: upper ends.
        limit: distance by which split-conformal intervals are wider at each end; a scalar.
    """

    y: Tensor
    mean: Tensor
    spread: Tensor
    lower: Tensor
    upper: Tensor
    limit: float


_SHARE_INSIDE = "share of the rows inside"
_MEAN_WIDTH = "mean width in units of the target"
_CONFORMAL = "the intervals that held-out training rows calibrate"


@_interval_metric("coverage (%)", 1, None, f"{_SHARE_INSIDE} the model's 90 % intervals")
def interval_coverage(of: Intervals) -> float:
    """Share of the rows inside the model's 90 % intervals, in per cent."""
    return _coverage(of, 0.0)


@_interval_metric("width", 3, None, f"{_MEAN_WIDTH} of the model's 90 % intervals")
def interval_width(of: Intervals) -> float:
    """Mean width of the model's 90 % intervals, in units of the target."""
    return _width(of, 0.0)


@_interval_metric("conformal coverage (%)", 1, None, f"{_SHARE_INSIDE} {_CONFORMAL}")
def conformal_coverage(of: Intervals) -> float:
    """Share of the rows inside the split-conformal 90 % intervals, in per cent."""
    return _coverage(of, of.limit)


@_interval_metric("conformal width", 3, None, f"{_MEAN_WIDTH} of {_CONFORMAL}")
def conformal_width(of: Intervals) -> float:
    """Mean width of the split-conformal 90 % intervals, in units of the target."""
    return _width(of, of.limit)


@_interval_metric("RMSE on the surer 80 %", 2, "lower", "where the predictive spread is smallest")
def answered_rmse(of: Intervals) -> float:
    """RMSE on the 80 % of the rows with the smallest predictive standard deviation."""
    kept = of.spread.argsort(stable=True)[: math.ceil(ANSWERED * len(of.spread))]
    return float((of.mean - of.y)[kept].square().mean().sqrt())


def _coverage(of: Intervals, limit: float) -> float:
    inside = (of.lower - limit <= of.y) & (of.y <= of.upper + limit)
    return 100 * float(inside.double().mean())


def _width(of: Intervals, limit: float) -> float:
    # A limit below 0 can leave nothing of a narrow interval.
    return float((of.upper - of.lower + 2 * limit).clamp_min(0).mean())
