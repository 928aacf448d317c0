"""Bayesian linear regression, carried forward exactly: only the model is approximate.

    y ~ N(W' phi(x), I / tau),   W | tau ~ N(mean, (tau precision)^-1),   tau ~ Gamma(shape, rate)

phi(x) are features of the inputs and a 1. y is a number, or the unit vector of one of C classes;
the columns of W then share a precision. This normal-gamma prior is conjugate: the posterior is of
the same family, so that tasks in sequence, in any order, give the same posterior as all their
points at once (Bishop 2006, exercises 3.12 and 3.13). Before the first task

    mean = 0,    precision = I / prior_scale^2,    Gamma(shape, rate) of the likelihood

`end_task` learns a task in closed form; training steps do nothing. Predictions of a number are
Student-t, with weights and noise integrated out. Predictions of classes are

    p(c | x) = softmax(beta m(x) / s(x))_c,   m = mean' phi,   s = 1 + phi' precision^-1 phi

with s the spread of the Student-t predictive in units of the noise.
`vcl_radial.likelihoods.calibration` learns beta from leave-one-out predictions of every task's
points, for which m / s is m - y h, h = phi' precision^-1 phi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Gamma
from torch.nn.functional import one_hot

from vcl_radial.config.ranges import Positive
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Gaussian
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.exact_head import ExactHead
from vcl_radial.methods.fixed_features import FixedFeatureMethod, PointsOf, gram, most_likely

Points = Callable[[], Iterable[tuple[Tensor, Tensor]]]
"""Returns all features `[n, D]` and targets `[n, C]`, in batches, at every call."""

NOISE = 1.0, 1e-3
"""Shape and rate of the first prior of the noise precision, if the likelihood has none."""


@dataclass(frozen=True)
class Sums:
    """Sums over points; all tensors float64.

    Attributes:
        squared: sum phi phi', `[D, D]`.
        cross: sum phi y', `[D, C]`.
        squares: sum |y|^2.
        count: number of points.
    """

    squared: Tensor
    cross: Tensor
    squares: Tensor
    count: int

    @classmethod
    def over(cls, points: Iterable[tuple[Tensor, Tensor]], like: Tensor) -> Sums:
        """The sums over points, for weights with the shape of a tensor `[D, C]` float64."""
        squared, cross = like.new_zeros(len(like), len(like)), torch.zeros_like(like)
        squares, count = torch.zeros_like(like[0, 0]), 0
        for batch, y in points:
            phi = batch.double()
            squared += gram(phi)
            cross += phi.T @ y
            squares += y.square().sum()
            count += len(y)
        return cls(squared, cross, squares, count)

    def __add__(self, other: Sums) -> Sums:
        """The sums over the points of both."""
        return Sums(
            self.squared + other.squared,
            self.cross + other.cross,
            self.squares + other.squares,
            self.count + other.count,
        )

    def posterior(self, prior: NormalGamma) -> NormalGamma:
        """The posterior from a prior whose mean is 0, without the points.

        `NormalGamma.update`, which sees the points, is more exact where the fit is nearly perfect.
        """
        outputs = self.cross.shape[1]
        precision = prior.precision + self.squared
        root = torch.linalg.cholesky(precision)
        mean = torch.cholesky_solve(self.cross, root)
        shape = prior.shape + self.count * outputs / 2
        q = NormalGamma(mean, precision, shape, prior.rate + residual(self, root) / 2)
        q.__dict__["root"] = root
        return q


@dataclass(frozen=True)
class NormalGamma:
    """A distribution over weights and noise precision; all tensors float64.

    Attributes:
        mean: `[D, C]`.
        precision: precision of each column in units of tau, `[D, D]`.
        shape: shape of the Gamma distribution.
        rate: rate of the Gamma distribution.
    """

    mean: Tensor
    precision: Tensor
    shape: Tensor
    rate: Tensor

    @classmethod
    def prior(
        cls, d: int, prior_scale: float, shape: float, rate: float, outputs: int = 1
    ) -> NormalGamma:
        """N(0, prior_scale^2 / tau) for each of D x C weights."""
        return cls(
            torch.zeros(d, outputs, dtype=torch.float64),
            torch.eye(d, dtype=torch.float64) / prior_scale**2,
            torch.tensor(shape, dtype=torch.float64),
            torch.tensor(rate, dtype=torch.float64),
        )

    @cached_property
    def root(self) -> Tensor:
        """L with L L' = precision, lower triangular."""
        root: Tensor = torch.linalg.cholesky(self.precision)
        return root

    def update(self, points: Points, sums: Sums | None = None) -> NormalGamma:
        """The posterior after more points; `points` is called twice, or once if `sums` is given."""
        sums = Sums.over(points(), self.mean) if sums is None else sums
        precision = self.precision + sums.squared
        root = torch.linalg.cholesky(precision)
        # Contiguous, like a mean that was stored and loaded: products with both give the same bits.
        mean = torch.cholesky_solve(self.precision @ self.mean + sums.cross, root).contiguous()
        # Squared differences, because the usual form y'y - m'Pm cancels if the noise is small.
        moved, count = mean - self.mean, 0
        squares = (moved * (self.precision @ moved)).sum()
        for phi, y in points():
            squares = squares + (y - phi.double() @ mean).square().sum()
            count += y.numel()
        q = NormalGamma(mean, precision, self.shape + count / 2, self.rate + squares / 2)
        q.__dict__["root"] = root
        return q

    def quadratic(self, phi: Tensor) -> Tensor:
        """H = phi' precision^-1 phi of features `[n, D]`; `[n]`."""
        return quadratic(self.root, phi)

    def predictive(self, phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The Student-t predictive of targets at features `[n, D]`: location, scale, degrees.

        St(y; 2 shape, phi'mean, sqrt(rate / shape (1 + h)));   `[n, C]`, `[n]` and a scalar
        """
        scale = (self.rate / self.shape * (1 + self.quadratic(phi))).sqrt()
        return phi.double() @ self.mean, scale, 2 * self.shape

    def logits(self, phi: Tensor, beta: Tensor) -> Tensor:
        """The logits of classes, beta m / s, at features `[n, D]`; `[n, C]`."""
        phi = phi.double()
        return beta * (phi @ self.mean) / (1 + self.quadratic(phi))[:, None]

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """M / s without each point, m - y h, of learned points `[n, D]`, `[n, C]`; `[n, C]`."""
        return phi.double() @ self.mean - self.quadratic(phi)[:, None] * y

    def draw(self) -> Tensor:
        """Weights `[D, C]`, with the noise precision drawn too."""
        noise = torch.randn_like(self.mean)
        moved = torch.linalg.solve_triangular(self.root.mT, noise, upper=True)
        precision: Tensor = Gamma(self.shape, self.rate).sample()
        drawn: Tensor = self.mean + moved / precision.sqrt()
        return drawn


def quadratic(root: Tensor, phi: Tensor) -> Tensor:
    """H = phi' (L L')^-1 phi of features `[n, D]` and a lower triangular root L; `[n]` float64."""
    white = torch.linalg.solve_triangular(root, phi.double().T, upper=False)
    squares: Tensor = white.square().sum(0)
    return squares


def residual(sums: Sums, root: Tensor) -> Tensor:
    """S = sum |y|^2 - tr(B' P^-1 B), B = sum phi y', at a root of P = alpha I + sum phi phi'."""
    squares = sums.squares - (sums.cross * torch.cholesky_solve(sums.cross, root)).sum()
    return squares.clamp(min=0)  # if the fit is perfect, rounding may give a negative value


def prior_precision(sums: Sums, prior: NormalGamma) -> float:
    """The alpha of the prior N(0, 1 / (tau alpha)) that maximises the evidence of the targets.

    log p(Y | alpha) = C/2 (D log alpha - log |P|) - (shape + n C / 2) log(rate + S / 2) + constant,
    P = alpha I + sum phi phi',   S the `residual`
    """
    d, outputs = sums.cross.shape

    def evidence(log_alpha: float) -> float:
        ridge = math.exp(log_alpha) * torch.eye(d).to(sums.squared)
        root = torch.linalg.cholesky(sums.squared + ridge)
        volume = d * log_alpha - 2 * root.diagonal().log().sum()
        weight = prior.shape + sums.count * outputs / 2
        misfit = (prior.rate + residual(sums, root) / 2).log()
        return float(outputs / 2 * volume - weight * misfit)

    return math.exp(most_likely(evidence))


def log_evidence(prior: NormalGamma, posterior: NormalGamma) -> float:
    """Log p(Y) of the n C targets between prior and posterior, weights and noise integrated out.

    C/2 (log |P0| - log |P|) + a0 log b0 - a log b + log Gamma(a) / Gamma(a0) - (a - a0) log 2 pi

    with the shapes a and the rates b of the noise; in nats (Bishop 2006, section 3.5).
    """

    def term(q: NormalGamma) -> Tensor:
        volume = q.mean.shape[1] * q.root.diagonal().log().sum()
        return q.shape.lgamma() - q.shape * (q.rate.log() + math.log(2 * math.pi)) - volume

    return float(term(posterior) - term(prior))


class ConjugateHead(ExactHead[NormalGamma]):
    """A head with a conjugate posterior over its weights.

    In training its outputs use the posterior's mean. In evaluation they use a draw of the weights,
    or, for classes, are the logits of the predictive.

    Args:
        prior: prior of the weights.
        classes: whether the targets are classes; if not, they are numbers.
    """

    mean: nn.Parameter

    def __init__(self, prior: NormalGamma, *, classes: bool) -> None:
        super().__init__(prior, "mean", classes=classes)

    def targets(self, y: Tensor) -> Tensor:
        """Numbers, or the unit vectors of classes; `[n, C]` float64."""
        if self.sharpness is None:
            return y.double()[:, None]
        return one_hot(y, self.mean.shape[1]).double()

    def forward(self, phi: Tensor) -> Tensor:
        """The outputs."""
        phi, q = phi.double(), self.posterior
        if self.training:
            return phi @ self.mean
        if self.sharpness is None:
            return phi @ q.draw()
        return q.logits(phi, self.sharpness.beta)

    def without_itself(self, phi: Tensor, y: Tensor) -> Tensor:
        """M / s without each point, which is m - y h from the posterior with the point."""
        return self.posterior.without_itself(phi, self.targets(y))


class BayesLinear(FixedFeatureMethod):
    """Carry the exact posterior of the weights and of the noise of a linear model forward.

    A posterior has D^2 numbers in float64 (32 MB for 2,000 features, 800 MB for 10,000). Memory
    holds them twice, with the root, and six times while a task is learned. The time of a task is
    D^2 per point and D^3 once.

    Args:
        network: see `FixedFeatureMethod`.
        prior_scale: weights have the first prior N(0, prior_scale^2 / tau).
        evidence: whether a head's first task sets this scale to the one with the largest evidence.
        settings: settings of `FixedFeatureMethod`.

    Raises:
        UserError: see `FixedFeatureMethod`; also if the likelihood is neither for numbers nor for
            classes.
    """

    carries = "the posterior of a linear model: the means and the precision matrix of its weights"
    likelihoods = frozenset({"gaussian", "categorical"})
    recipe_keys = frozenset({"eval_samples", "prior_scale"})

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_scale: Positive = 1.0,
        evidence: bool = False,
        **settings: Any,
    ) -> None:
        self.prior_scale, self.evidence = prior_scale, evidence
        super().__init__(network, **settings)

    def make_head(self, size: int, outputs: int) -> ConjugateHead:
        """A head with the first prior."""
        prior = NormalGamma.prior(size, self.prior_scale, *self._noise, outputs=outputs)
        return ConjugateHead(prior, classes=not isinstance(self.likelihood, Gaussian))

    @property
    def _noise(self) -> tuple[float, float]:
        """Shape and rate of the first prior of the noise."""
        return self.likelihood.prior if isinstance(self.likelihood, Gaussian) else NOISE

    def is_first(self, prior: NormalGamma) -> bool:
        """Whether a posterior is the first prior: a point would raise the shape of the noise."""
        return float(prior.shape) == self._noise[0]

    def learn_head(self, head: ExactHead[Any], points: PointsOf) -> None:
        """Add the points to the posterior."""
        assert isinstance(head, ConjugateHead)
        prior = head.posterior

        def with_targets() -> Iterator[tuple[Tensor, Tensor]]:
            return ((phi, head.targets(y)) for phi, y in points())

        sums = Sums.over(with_targets(), prior.mean)
        if self.evidence and self.is_first(prior):
            alpha = prior_precision(sums, prior)
            start = alpha * torch.eye(len(prior.precision)).to(prior.precision)
            prior = replace(prior, precision=start)
        posterior = prior.update(with_targets, sums)
        head.take(posterior)
        if isinstance(self.likelihood, Gaussian):
            noise = self.likelihood.noise
            noise.shape, noise.rate = posterior.shape.float().cpu(), posterior.rate.float().cpu()

    def predict(
        self,
        x: Tensor,
        task: int | Tensor = 0,
        *,
        number: int | None = None,
        differentiable: bool = False,
    ) -> Any:
        """The Student-t predictive of a number, or the log-probabilities `[B, C]` of classes."""
        if self.network.trained is not None or not isinstance(self.likelihood, Gaussian):
            return super().predict(x, task, number=number, differentiable=differentiable)
        labels = set(torch.as_tensor(task).flatten().tolist())
        if len(labels) > 1:
            raise UserError("a prediction of numbers takes one head: split the rows by head")
        head = self.head(int(labels.pop()))
        assert isinstance(head, ConjugateHead)
        with torch.set_grad_enabled(differentiable and torch.is_grad_enabled()):
            location, scale, degrees = head.posterior.predictive(self.network.phi(x))
        return Mixture(location.T, scale[None], degrees[None])
