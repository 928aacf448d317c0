"""Random projections with a ridge that every task chooses (RanPAC: McDonnell et al. 2023).

Two sums over the points of all tasks so far are carried, with phi(x) features of the inputs and y
the unit vector of a class:

    G = sum phi phi',   Q = sum phi y',   W = (G + lambda I)^-1 Q

The scores are W' phi(x). Every task chooses lambda anew, of 10^-8 to 10^8 in powers of ten: a ridge
regression on four fifths of its points has the least squared error on the other points at this
lambda. It then holds for the sums of all tasks. This is the second phase of the paper, as in its
code; every fifth point is held out, where the code holds out the last fifth of shuffled points.

The paper predicts the class of the largest score, and needs no probabilities. Here they are
softmax(beta W' phi)_c. `vcl_radial.likelihoods.calibration` learns beta from leave-one-out scores,
(W' phi - h y) / (1 - h) with h = phi' (G + lambda I)^-1 phi.

The features of the paper are rectified random projections of what a pretrained network returns,
which its first phase adapts to the first task. Here no network is pretrained: `features =
"random-relu"` projects the inputs, or with `of` a body or patches.
`vcl_radial.methods.bayes_linear` has a prior that does not change after the first task, and the
posterior's spread in its probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from vcl_radial.methods.bayes_linear import Sums, quadratic
from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.fixed_features import FixedFeatureMethod, PointsOf

POWERS = range(-8, 9)
"""The powers of ten to choose lambda from."""

HELD_OUT = 5
"""One point of this many is held out to choose lambda."""


@dataclass(frozen=True)
class Ridge:
    """A ridge regression on C classes; all tensors float64.

    Attributes:
        weights: W, `[D, C]`.
        squared: G, `[D, D]`.
        cross: Q, `[D, C]`.
        ridge: lambda.
    """

    weights: Tensor
    squared: Tensor
    cross: Tensor
    ridge: Tensor

    @classmethod
    def empty(cls, d: int, classes: int) -> Ridge:
        """The regression on no points."""
        zeros = torch.zeros(d, classes, dtype=torch.float64)
        return cls(zeros, zeros.new_zeros(d, d), zeros.clone(), zeros.new_ones(()))

    @classmethod
    def fit(cls, squared: Tensor, cross: Tensor, ridge: Tensor) -> Ridge:
        """The regression with these sums."""
        empty = cls(cross, squared, cross, ridge)
        fitted = cls(torch.cholesky_solve(cross, empty.root), squared, cross, ridge)
        fitted.__dict__["root"] = empty.root
        return fitted

    @cached_property
    def root(self) -> Tensor:
        """L with L L' = G + lambda I, lower triangular."""
        identity = torch.eye(len(self.squared)).to(self.squared)
        root: Tensor = torch.linalg.cholesky(self.squared + self.ridge * identity)
        return root

    def error(self, held: Sums) -> float:
        """The sum of |y - W' phi|^2 over some points."""
        explained = 2 * held.cross - held.squared @ self.weights
        return float(held.squares - (self.weights * explained).sum())

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """The scores `[n, C]` of learned points `[n, D]`, each from all other points."""
        phi = phi.double()
        h = quadratic(self.root, phi)[:, None]
        return (phi @ self.weights - h * y) / (1 - h).clamp(min=1e-12)


class RidgeHead(ExactHead[Ridge]):
    """Logits from features and a 1; the 1 is ignored.

    Args:
        prior: the regression on no points.
    """

    weights: Tensor

    def __init__(self, prior: Ridge) -> None:
        super().__init__(prior, "weights", classes=True)

    def targets(self, y: Tensor) -> Tensor:
        """The unit vectors of classes, `[n, C]` float64."""
        return one_hot(y, self.weights.shape[1]).double()

    def forward(self, phi: Tensor) -> Tensor:
        """The logits."""
        assert self.sharpness is not None
        return self.sharpness.beta * (phi[:, :-1].double() @ self.weights)

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """See `Ridge.without_itself`."""
        return self.posterior.without_itself(phi[:, :-1], self.targets(y))


class RanPAC(FixedFeatureMethod):
    """Carry the sums of a ridge regression forward, and choose the ridge by the last task.

    Memory is D^2 + 2 C D numbers in float64. The time of a task is D^2 per point, and 18 D^3.

    Args:
        network: see `FixedFeatureMethod`.
        settings: settings of `FixedFeatureMethod`.

    Raises:
        UserError: see `FixedFeatureMethod`; also for a likelihood without classes.
    """

    carries = "the sums of a ridge regression: products of features, and of features with classes"
    likelihoods = frozenset({"categorical"})

    def make_head(self, size: int, outputs: int) -> RidgeHead:
        """A head without points."""
        return RidgeHead(Ridge.empty(size - 1, outputs))

    def learn_head(self, head: ExactHead[Any], points: PointsOf) -> None:
        """Choose the ridge, and add the points to the sums."""
        assert isinstance(head, RidgeHead)

        def some(held_out: bool) -> Iterator[tuple[Tensor, Tensor]]:
            for phi, y in points():
                rows = (torch.arange(len(y)) % HELD_OUT == HELD_OUT - 1) == held_out
                yield phi[rows.to(y.device), :-1], head.targets(y[rows.to(y.device)])

        past = head.posterior
        fitted, held = (Sums.over(some(held_out), past.weights) for held_out in (False, True))
        task = fitted + held
        squared, cross = past.squared + task.squared, past.cross + task.cross
        ridge = best_ridge(fitted, held, squared) if held.count else past.ridge
        head.take(Ridge.fit(squared, cross, ridge))


def best_ridge(fitted: Sums, held: Sums, squared: Tensor) -> Tensor:
    """The lambda at which a regression on some points has the least error on others.

    Args:
        fitted: sums over the points of the regression.
        held: sums over the other points.
        squared: G of all tasks; a lambda is left out that its rounding errors would hide.
    """
    rounding = torch.finfo(squared.dtype).eps * float(squared.trace())
    powers = [power for power in POWERS if 10.0**power > rounding] or POWERS[-1:]
    ridges = [squared.new_tensor(10.0**power) for power in powers]
    return min(ridges, key=lambda at: Ridge.fit(fitted.squared, fitted.cross, at).error(held))
