"""Prediction sets with a stated coverage, by split conformal prediction.

**Sets of classes**, with the score -log p(y | x) of a point (Sadinle, Lei and Wasserman 2019):

    C(x) = { c : -log p(c | x) <= limit },    limit = the k-th smallest score of n held-out points,
                                              k = ceil((n + 1) coverage)

and the most probable class, as a set without a class would be no answer. If held-out and new points
are exchangeable, C(x) holds the class of a new point with a probability of at least the coverage
(Vovk, Gammerman and Shafer 2005), whatever the model. A model that changes after the limit was set,
as by learning more tasks, has no such guarantee.

**Intervals of numbers**, with the distance of y from an interval [l(x), u(x)] of the model as the
score, which is below 0 inside it (Romano, Patterson and Candes 2019):

    [l(x) - limit, u(x) + limit],    score = max(l(x) - y, y - u(x))
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

COVERAGE = 0.9
"""The stated coverage."""

FEWEST = round(COVERAGE / (1 - COVERAGE))
"""The smallest number of held-out points for which the limit is finite."""


def limit_of(log_probs: Tensor, labels: Tensor, coverage: float = COVERAGE) -> float:
    """The limit of sets, in nats; infinite if there are too few points.

    Args:
        log_probs: natural logarithms of the probabilities of held-out points, `[n, C]`.
        labels: their classes, `[n]`.
        coverage: the stated coverage, above 0 and below 1.
    """
    return smallest(-log_probs.double().gather(1, labels[:, None])[:, 0], coverage)


def limit_of_intervals(
    lower: Tensor, upper: Tensor, y: Tensor, coverage: float = COVERAGE
) -> float:
    """The limit by which intervals `[n]` are widened, in units of y `[n]`; below 0 it narrows them.

    It is infinite if there are too few points.
    """
    return smallest((lower - y).maximum(y - upper), coverage)


def smallest(scores: Tensor, coverage: float) -> float:
    """The k-th smallest of scores `[n]`, k = ceil((n + 1) coverage); infinite if k > n."""
    rank = math.ceil(round((len(scores) + 1) * coverage, 9))  # 0.9 is no binary number
    return float(scores.kthvalue(rank).values) if rank <= len(scores) else math.inf


def sets(log_probs: Tensor, limit: float) -> Tensor:
    """The set of each point as a mask of its classes, `[B, C]`, from log-probabilities."""
    best = log_probs.max(1, keepdim=True).values
    return (-log_probs.double() <= limit) | (log_probs == best)
