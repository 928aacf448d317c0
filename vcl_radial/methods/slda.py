"""Streaming linear discriminant analysis (Hayes and Kanan 2020).

Every class has a running mean mu_c and a count n_c; all classes share a running covariance. The
t + 1st point phi(x), of class y, moves them, the covariance first:

    Delta = t / (t + 1) (phi - mu_y)(phi - mu_y)',   Sigma <- (t Sigma + Delta) / (t + 1)
    mu_y <- (n_y mu_y + phi) / (n_y + 1)

and with the shrinkage epsilon the scores are linear, as in the code of the paper:

    Lambda = [(1 - epsilon) Sigma + epsilon I]^-1
    p(c | x) = softmax(mu_c' Lambda phi(x) - mu_c' Lambda mu_c / 2)_c

t Sigma grows by one matrix product per batch, which equals the update point by point, to rounding.
Delta has t / (t + 1) where the scatter around a class mean has n_y / (n_y + 1), so that Sigma
depends a little on the order of the points, and the first point of a class counts with its distance
from 0. `vcl_radial.methods.bayes_discriminant` depends on no order: it has a prior, and integrates
over the means.

As in that code, the classes have equal prior probabilities, and a class without points has the
score 0. The code can also take the first covariance from a batch of points; here the stream begins
with the first point, which it allows too. The features are not those of a pretrained network, and
are far from Gaussian: the probabilities are much too certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Share
from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.fixed_features import FixedFeatureMethod, PointsOf, gram


@dataclass(frozen=True)
class Stream:
    """The running statistics of the points of C classes; all tensors float64.

    Attributes:
        counts: n_c, `[C]`.
        means: mu_c, `[C, D]`.
        scatter: t Sigma, `[D, D]`.
        shrinkage: epsilon.
    """

    counts: Tensor
    means: Tensor
    scatter: Tensor
    shrinkage: Tensor

    @classmethod
    def empty(cls, d: int, classes: int, shrinkage: float) -> Stream:
        """Statistics of no points."""
        zeros = torch.zeros(classes, d, dtype=torch.float64)
        scatter = torch.zeros(d, d, dtype=torch.float64)
        return cls(zeros.new_zeros(classes), zeros, scatter, zeros.new_tensor(shrinkage))

    def update(self, points: PointsOf) -> Stream:
        """The statistics after more points, in their order."""
        counts, means, scatter = self.counts.clone(), self.means.clone(), self.scatter.clone()
        for features, y in points():
            phi, t = features.double(), counts.sum()
            moves = torch.empty_like(phi)
            for label in sorted({*y.tolist()}):
                rows = (y == label).nonzero().flatten()
                sums = counts[label] * means[label] + phi[rows].cumsum(0)
                number = counts[label] + torch.arange(1, len(rows) + 1).to(counts)
                after = sums / number[:, None]
                before = torch.cat([means[label, None], after[:-1]])
                moves[rows] = phi[rows] - before
                counts[label], means[label] = number[-1], after[-1]
            earlier = t + torch.arange(len(y)).to(t)
            scatter += gram((earlier / (earlier + 1)).sqrt()[:, None] * moves)
        return Stream(counts, means, scatter, self.shrinkage)

    @cached_property
    def weights(self) -> Tensor:
        """Lambda mu_c, `[D, C]`.

        Raises:
            torch.linalg.LinAlgError: the shrinkage is 0, and the covariance has no inverse.
        """
        identity = torch.eye(len(self.scatter)).to(self.scatter)
        sigma = self.scatter / self.counts.sum().clamp(min=1)
        root = torch.linalg.cholesky((1 - self.shrinkage) * sigma + self.shrinkage * identity)
        return torch.cholesky_solve(self.means.T, root)

    def scores(self, phi: Tensor) -> Tensor:
        """mu_c' Lambda phi - mu_c' Lambda mu_c / 2 of features `[n, D]`; `[n, C]`."""
        return phi.double() @ self.weights - (self.means * self.weights.T).sum(1) / 2


class StreamHead(ExactHead[Stream]):
    """Scores from features and a 1; the 1 is ignored.

    Args:
        prior: statistics of no points.
    """

    def __init__(self, prior: Stream) -> None:
        super().__init__(prior, "means", classes=False)

    def forward(self, phi: Tensor) -> Tensor:
        """The scores."""
        return self.posterior.scores(phi[:, :-1])


class SLDA(FixedFeatureMethod):
    """Carry class means and one covariance forward, point by point.

    Memory is D^2 + C D numbers in float64. The time of a task is D^2 per point, and D^3 once.

    Args:
        network: see `FixedFeatureMethod`.
        shrinkage: epsilon.
        settings: settings of `FixedFeatureMethod`.

    Raises:
        UserError: see `FixedFeatureMethod`; also for a likelihood without classes.
    """

    carries = "the running mean and number of points of each class, and one running covariance"
    likelihoods = frozenset({"categorical"})

    def __init__(self, network: nn.Module, *, shrinkage: Share = 1e-4, **settings: Any) -> None:
        self.shrinkage = shrinkage
        super().__init__(network, **settings)

    def make_head(self, size: int, outputs: int) -> StreamHead:
        """A head without points."""
        return StreamHead(Stream.empty(size - 1, outputs, self.shrinkage))

    def learn_head(self, head: ExactHead[Any], points: PointsOf) -> None:
        """Add the points to the statistics."""
        assert isinstance(head, StreamHead)
        head.take(head.posterior.update(lambda: ((phi[:, :-1], y) for phi, y in points())))
