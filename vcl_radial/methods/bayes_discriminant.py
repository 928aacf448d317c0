"""Bayesian discriminant analysis: Gaussian classes with one covariance, carried exactly.

    phi(x) | c ~ N(mu_c, Sigma),    mu_c | Sigma ~ N(m_0, Sigma / kappa_0),
    Sigma ~ inverse-Wishart(Psi_0 = lambda I, nu_0 = D + 2),    p(c) ~ Dirichlet(1, ..., 1)

with phi(x) features of the inputs. The prior is conjugate (Murphy 2012, section 4.6.3): the points
of all tasks so far enter only through their number n_c and their sum s_c in every class, and the
sum S of their squares. The order does not matter. With kappa_c = kappa_0 + n_c

    m_c = (kappa_0 m_0 + s_c) / kappa_c,    nu = nu_0 + n,
    Psi = Psi_0 + S + sum_c (kappa_0 m_0 m_0' - kappa_c m_c m_c')

and a new point of class c is Student-t with nu - D + 1 degrees of freedom. By Bayes' rule

    p(c | x) = softmax(beta [log p(c) + log St(phi(x); c)])_c

`vcl_radial.likelihoods.calibration` learns beta from leave-one-out predictions: features are not
Gaussian, and at beta = 1 such a model is far too certain. m_0 is the mean of the first task's
features, and lambda, from e^-12 to e^16, maximises their evidence. This is streaming discriminant
analysis (Hayes and Kanan 2020), except that it has a prior and integrates over the unknown means of
the classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.fixed_features import FixedFeatureMethod, PointsOf, gram, most_likely

KAPPA = 1e-2
"""kappa_0, the effective number of points in the prior of a class mean."""


@dataclass(frozen=True)
class Discriminant:
    """Sufficient statistics of the points of C classes; all tensors float64.

    Attributes:
        counts: n_c, `[C]`.
        sums: s_c, `[C, D]`.
        squares: S, `[D, D]`.
        centre: m_0, `[D]`.
        ridge: lambda.
    """

    counts: Tensor
    sums: Tensor
    squares: Tensor
    centre: Tensor
    ridge: Tensor

    @classmethod
    def empty(cls, d: int, classes: int) -> Discriminant:
        """Statistics of no points."""
        zeros = partial(torch.zeros, dtype=torch.float64)
        return cls(zeros(classes), zeros(classes, d), zeros(d, d), zeros(d), zeros(()) + 1)

    def update(self, points: PointsOf) -> Discriminant:
        """The statistics after more points."""
        counts, sums, squares = self.counts.clone(), self.sums.clone(), self.squares.clone()
        for phi, y in points():
            in_class = one_hot(y, len(counts)).double()
            counts += in_class.sum(0)
            sums += in_class.T @ phi.double()
            squares += gram(phi)
        return replace(self, counts=counts, sums=sums, squares=squares)

    @property
    def kappas(self) -> Tensor:
        """kappa_c, `[C]`."""
        return KAPPA + self.counts

    @cached_property
    def means(self) -> Tensor:
        """m_c, `[C, D]`."""
        return (KAPPA * self.centre + self.sums) / self.kappas[:, None]

    @cached_property
    def scatter(self) -> Tensor:
        """Psi without Psi_0."""
        start = KAPPA * len(self.counts) * torch.outer(self.centre, self.centre)
        return self.squares + start - (self.kappas[:, None] * self.means).T @ self.means

    @property
    def degrees(self) -> Tensor:
        """nu, a scalar."""
        return self.counts.sum() + len(self.centre) + 2

    @cached_property
    def root(self) -> Tensor:
        """L with L L' = Psi, lower triangular."""
        d = len(self.centre)
        root: Tensor = torch.linalg.cholesky(
            self.scatter + self.ridge * torch.eye(d).to(self.scatter)
        )
        return root

    def evidence(self, log_ridge: float) -> float:
        """Log p(points | classes) in nats, up to a constant, at lambda = exp(log_ridge).

        nu_0 / 2 log |Psi_0| - nu / 2 log |Psi|
        """
        at, d = replace(self, ridge=torch.tensor(log_ridge).exp().to(self.ridge)), len(self.centre)
        volume = 2 * at.root.diagonal().log().sum()
        return float((d + 2) / 2 * d * log_ridge - self.degrees / 2 * volume)

    def whitened(self, phi: Tensor) -> tuple[Tensor, Tensor]:
        """L^-1 phi of points `[n, D]`, and L^-1 m_c; `[n, D]` and `[C, D]`."""
        rows = torch.cat([phi.double(), self.means]).T
        solved = torch.linalg.solve_triangular(self.root, rows, upper=False).T
        count = phi.shape[0]  # `len` is no symbol where an export traces any number of points
        return solved[:count], solved[count:]

    def log_joint(self, phi: Tensor) -> Tensor:
        """Log p(c) + log St(phi; c) of points `[n, D]`, up to a constant common to all classes."""
        points, means = self.whitened(phi)
        return self._log_joint(torch.cdist(points, means).square(), self.kappas, self.degrees)

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """`log_joint` of learned points `[n, D]`, each from the statistics of all other points.

        Without a point x of class y, kappa_y and nu decrease by 1, and Psi by a u u' with u = x -
        m_y and a = kappa_y / (kappa_y - 1). The distance of x from the new mean is a u.
        """
        points, means = self.whitened(phi)
        in_class = one_hot(y, len(means)).bool()
        u = points - means[y]
        kappa = self.kappas[y]
        a, length = kappa / (kappa - 1), u.square().sum(1)
        at = u @ means.T
        along = length[:, None] + at.gather(1, y[:, None]) - at  # (x - m_c)'u
        rest = (1 - a * length).clamp(min=1e-12)
        squares = torch.cdist(points, means).square() + (a / rest)[:, None] * along.square()
        squares[in_class] = a.square() * length / rest
        kappas = self.kappas - in_class.double()
        return self._log_joint(squares, kappas, self.degrees - 1)

    def _log_joint(self, squares: Tensor, kappas: Tensor, degrees: Tensor) -> Tensor:
        d, spread = len(self.centre), 1 + 1 / kappas
        log_t = -d / 2 * spread.log() - (degrees + 1) / 2 * torch.log1p(squares / spread)
        return (kappas - KAPPA + 1).log() + log_t


class DiscriminantHead(ExactHead[Discriminant]):
    """Logits from features and a 1; the 1 is ignored.

    Args:
        prior: statistics of no points.
    """

    def __init__(self, prior: Discriminant) -> None:
        super().__init__(prior, "sums", classes=True)

    def forward(self, phi: Tensor) -> Tensor:
        """The logits."""
        assert self.sharpness is not None
        return self.sharpness.beta * self.posterior.log_joint(phi[:, :-1])

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """See `Discriminant.without_itself`."""
        return self.posterior.without_itself(phi[:, :-1], y)


class BayesDiscriminant(FixedFeatureMethod):
    """Carry the exact posterior of one Gaussian per class forward; the classes share a covariance.

    Memory is D^2 + C D numbers in float64. The time of a task is D^2 per point, and D^3 once.

    Args:
        network: see `FixedFeatureMethod`.
        settings: settings of `FixedFeatureMethod`.

    Raises:
        UserError: see `FixedFeatureMethod`; also for a likelihood without classes.
    """

    carries = "the number and the sum of each class's features, and the sum of their squares"
    likelihoods = frozenset({"categorical"})

    def make_head(self, size: int, outputs: int) -> DiscriminantHead:
        """A head without points."""
        return DiscriminantHead(Discriminant.empty(size - 1, outputs))

    def learn_head(self, head: ExactHead[Any], points: PointsOf) -> None:
        """Add the points to the statistics of their classes."""
        assert isinstance(head, DiscriminantHead)
        prior = head.posterior
        posterior = prior.update(lambda: ((phi[:, :-1], y) for phi, y in points()))
        if not posterior.counts.any():
            return
        if not prior.counts.any():
            posterior = replace(posterior, centre=posterior.sums.sum(0) / posterior.counts.sum())
            ridge = math.exp(most_likely(posterior.evidence))
            posterior = replace(posterior, ridge=torch.tensor(ridge).to(posterior.ridge))
        head.take(posterior)
