"""Check that the memory of a task is a sum over its points, independent of the batches.

Bayes' rule adds up the points of a task, log p(w | D) = log p(w) + sum_n log p(y_n | x_n, w) + c.
Let R(D) be the penalty at the start of task 2 away from the weights at the end of task 1, minus the
penalty at them, where consolidate() has read the points D at those weights. A memory made from the
sum over n has

    R(D) = R_0 + S(D),    S(k copies of D) = k S(D)

with R_0 the part that does not depend on the points: a first prior, or all of it if consolidate()
does not read the points. So

    R does not depend on the batch size;                                              (1)
    with each point once, twice and three times R rises by equal amounts, both S(D);  (2)
    S(D) > 0 unless R does not depend on the points at all.                           (3)

(2) and (3) hold for a summed diagonal or dense Fisher, with any first prior, factor or decay. They
hold for Kronecker factors: the product is not a sum over disjoint sets of points, but k copies have
k times the product of one copy. They hold for importances of MAS and SI that are multiplied by N.
They hold with S = 0 for L2 and for a posterior or a precision from training that consolidate() only
carries. A mean over the points has S(k copies of D) = S(D): copies do not change R, but half of the
points do. The square of the mean gradient of a mini-batch, about 1/B of the mean square, fails (1).
If B is a constant of the method, the square fails (2), since the three copies of a point share a
mini-batch.

All trials have the same training, and differ only in the arguments of consolidate(). So this check
does not cover what a method accumulates in training, such as Vadam's squared gradients, nor a
memory for which consolidate() changes the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vcl_radial.conformance.penalty import BATCHES, Penalty
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.trial import Rows, half, seed
from vcl_radial.conformance.verdict import Fault, NotApplicable

ONCE: Rows = Tensor.clone
ROUNDING = 5e-7
"""Relative rounding error of a penalty: float32 sums of thousands of terms."""

DRAWS = 8
"""Number of consolidations to average over, if consolidating draws random numbers."""

UNEQUAL = 0.2
"""Largest relative difference of the two rises of (2). Damped Kronecker factors have a term in the
root of the number of copies, and stay within 9 % while this term is at most S. A root alone has
23 %, a square 67 %."""


def accumulates(subject: Subject) -> str:
    """Check that the memory of a task is a sum over its points and independent of their batches.

    A method that takes a mean over the points by design, such as MAS as published and EWC in some
    code, states so with the class attribute `memory_is_mean = True`; a method with
    `penalty_grows_with_points = True` need not sum either.
    """
    if not subject.penalty.present:
        raise NotApplicable("the past does not enter through penalty()")
    if subject.memoryless:
        raise NotApplicable("carries nothing but the weights, as the class says")
    consolidations = _Consolidations(subject)
    once = consolidations.rise(ONCE)
    if torch.equal(once, consolidations.rise(half, BATCHES[1])):
        return "consolidate() computes nothing from the points of the task"
    halved, doubled = consolidations.rise(half), consolidations.rise(_twice)
    large_batches = consolidations.rise(ONCE, BATCHES[1])
    error = _error(once, halved, doubled, large_batches)
    single, half_of_it, double = float(once.mean()), float(halved.mean()), float(doubled.mean())
    floor = ROUNDING * abs(single) + 5 * error
    by_points = max(abs(double - single), 2 * abs(half_of_it - single))
    _batch_size(single, float(large_batches.mean()), 0.02 * by_points + floor)
    same = f"the penalty is the same after batches of {BATCHES[0]} and {BATCHES[1]} points, and "
    if subject.method.memory_is_mean or subject.method.penalty_grows_with_points:
        return f"{same}made of a mean over the points, as the class says"
    if by_points < 5 * ROUNDING * abs(single):
        return f"{same}the points change little beside its other parts"
    if double - single < max(0.3 * abs(half_of_it - single), 2.5 * error):
        raise Fault(
            f"{_PENALTY} is {single:.6g} nats, and {double:.6g} where task 1 has each of its "
            "points twice, though consolidate() computes it from the points: let it sum over them, "
            "not take their mean (if a mean is meant, say so in the class: memory_is_mean = True)"
        )
    triple = float(consolidations.rise(_three_times).mean())
    expected = double - single
    if abs(triple - double - expected) > UNEQUAL * abs(expected) + 2 * floor:
        raise Fault(
            f"{_PENALTY} is {single:.6g}, {double:.6g} and {triple:.6g} nats where task 1 has "
            "each of its points once, twice and three times, and should rise by equal amounts: let "
            "consolidate() sum a term of each single point, such as the square of its "
            "gradient (if that is meant, say so in the class: memory_is_mean = True)"
        )
    return f"{same}grows in proportion with the points"


_PENALTY = "at the start of task 2 the penalty of moving the weights"


def _batch_size(small: float, large: float, tolerance: float) -> None:
    if abs(large - small) > tolerance:
        raise Fault(
            f"{_PENALTY} is {small:.6g} nats after task 1 was consolidated in batches of "
            f"{BATCHES[0]} points, and {large:.6g} after batches of {BATCHES[1]}: let "
            "consolidate() sum over single points; the square of a mini-batch's mean gradient "
            "is not the mean of the points' squares (vcl_radial.curvature.diagonal_fisher sums "
            "those)"
        )


def _twice(rows: Tensor) -> Tensor:
    """All rows, then all rows again, so that a mini-batch has different points."""
    return torch.cat([rows, rows])


def _three_times(rows: Tensor) -> Tensor:
    """Each row three times in succession, so that a mini-batch has copies of a point."""
    return rows.repeat_interleave(3, dim=0)


class _Consolidations:
    """Trials that differ only in the points and batches that consolidate() reads."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        first, second = (self._penalty(ONCE, BATCHES[0], draw) for draw in (0, 1))
        self.weights = first.start
        self.draws = DRAWS if first.rise_afar != second.rise_afar else 1

    def rise(self, points: Rows, batch: int = BATCHES[0]) -> Tensor:
        """Rise of the penalty in nats, for each draw `[draws]`.

        Raises:
            NotApplicable: the weights after task 1 depend on the arguments of consolidate().
        """
        penalties = [self._penalty(points, batch, draw) for draw in range(self.draws)]
        for penalty in penalties:
            if not all(torch.equal(penalty.start[n], w) for n, w in self.weights.items()):
                raise NotApplicable(
                    "consolidate() changes the weights by its points: penalties are not comparable"
                )
            if not math.isfinite(penalty.rise_afar):
                raise NotApplicable("the penalty is no finite number far from where task 1 ended")
        return torch.tensor([penalty.rise_afar for penalty in penalties]).double()

    def _penalty(self, points: Rows, batch: int, draw: int) -> Penalty:
        trial = self.subject.trial()

        def with_points(end: Callable[[Any], object], _: Any) -> None:
            with trial.replaced_points(points, batch) as task:
                seed(4, draw)
                end(task)

        trial.wrap_hook(with_points)
        return Penalty(trial)


def _error(*values: Tensor) -> float:
    """The standard error of the difference of two means, from the spread within all samples."""
    if len(values[0]) == 1:
        return 0.0
    variance = torch.stack([value.var() for value in values]).mean()
    return float((2 * variance / len(values[0])).sqrt())
