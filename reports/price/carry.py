"""A linear model's posterior, carried through a task sequence in one shape.

    (w P + G) m = w P m_0 + B,    P <- shape(P + G)

with m_0 and P the last mean and precision in units of the noise precision tau, G and B the sums of
the task, and w the weight of the prior. With w = 1 this is Bayes' rule within the shape; with a
larger w the past counts more than the shape's precision implies. Bayes' rule with the full P is
exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from reports.price.radial import RadialShape
from reports.price.shapes import Shape
from reports.price.tasks import LinearStream, Points, unit_vectors
from vcl_radial.methods.bayes_linear import (
    NOISE,
    NormalGamma,
    Sums,
    prior_precision,
    quadratic,
    residual,
)


@dataclass(frozen=True)
class Model:
    """The model, the same for all shapes.

    Attributes:
        d: number of features, with the constant 1.
        outputs: number of outputs, C.
        alpha: the first prior is N(0, 1 / (tau alpha)) for every weight.
        noise: noise precision, tau.
    """

    d: int
    outputs: int
    alpha: float
    noise: float

    @classmethod
    def of(cls, first: Sums) -> Model:
        """Set alpha to maximise the evidence of the first task, and tau to its mean.

        tau = (shape + n C / 2) / (rate + S / 2),   S the `residual`
        """
        d, outputs = first.cross.shape
        alpha = prior_precision(first, NormalGamma.prior(d, 1.0, *NOISE, outputs=outputs))
        root = torch.linalg.cholesky(first.squared + alpha * torch.eye(d).to(first.squared))
        shape, rate = NOISE
        noise = (shape + first.count * outputs / 2) / (rate + float(residual(first, root)) / 2)
        return cls(d, outputs, alpha, noise)


@dataclass(frozen=True)
class Carried(ABC):
    """The posterior after a task.

    Attributes:
        mean: mean of the weights, `[D, C]`.
        held: a root of w P + G of the task; the mean is the optimum for this precision.
    """

    mean: Tensor
    held: Tensor

    @abstractmethod
    def outputs(self, points: Points) -> Tensor:
        """Outputs of points over the variance of a target in units of the noise, `[n, C]`."""

    @abstractmethod
    def divergence(self, exact: CarriedGaussian, noise: float) -> float:
        """KL(q || p) to the exact posterior p, over all weights, in nats."""

    def outputs_without(self, points: Points) -> Tensor:
        """Leave-one-out `outputs` `[n, C]` of the task's points: each from all other points.

        m'phi - h y, with h from the precision whose optimum is m; see
        `vcl_radial.methods.bayes_linear`.
        """
        h = quadratic(self.held, points.phi)[:, None]
        return points.phi.double() @ self.mean - h * unit_vectors(points.y, self.mean.shape[1])

    def _shift(self, exact: CarriedGaussian, noise: float) -> float:
        """Part of the divergence from the distance between the mean and the exact mean, in nats."""
        away = self.mean - exact.mean
        return float(noise / 2 * (away * (exact.precision @ away)).sum())


@dataclass(frozen=True)
class CarriedGaussian(Carried):
    """A Gaussian posterior in its shape; the same precision for every output.

    Attributes:
        precision: precision in units of tau, `[D, D]`.
    """

    precision: Tensor

    @cached_property
    def root(self) -> Tensor:
        """The root L with L L' = precision."""
        root: Tensor = torch.linalg.cholesky(self.precision)
        return root

    def outputs(self, points: Points) -> Tensor:
        """The variance of a target is 1 + h."""
        variance = 1 + quadratic(self.root, points.phi)
        return points.phi.double() @ self.mean / variance[:, None]

    def divergence(self, exact: CarriedGaussian, noise: float) -> float:
        """The divergence of Gaussians."""
        inside = torch.linalg.solve_triangular(self.root, exact.root, upper=False)
        volume = 2 * (self.root.diagonal().log() - exact.root.diagonal().log()).sum()
        d, outputs = self.mean.shape
        spread = outputs / 2 * (inside.square().sum() - d + volume)
        return float(spread) + self._shift(exact, noise)


@dataclass(frozen=True)
class CarriedRadial(Carried):
    """A radial posterior.

    Attributes:
        q: the posterior in groups.
        variance: variance of every weight, `[D, C]`.
        noise: noise precision, tau.
    """

    q: Any
    variance: Tensor
    noise: float

    def outputs(self, points: Points) -> Tensor:
        """The variance of a target follows from the variance of the mean output."""
        phi = points.phi.double()
        variance = 1 + self.noise * (phi.square() @ self.variance.mean(1))
        return phi @ self.mean / variance[:, None]

    def divergence(self, exact: CarriedGaussian, noise: float) -> float:
        """-H(q) - E_q log p."""
        d, outputs = self.mean.shape
        spread = noise * (exact.precision.diagonal()[:, None] * self.variance).sum()
        log_det = 2 * exact.root.diagonal().log().sum() + d * math.log(noise)
        constant = outputs / 2 * (d * math.log(2 * math.pi) - log_det)
        cross = constant + spread / 2 + self._shift(exact, noise)
        return float(cross - self.q.entropy().sum())


def precisions(stream: LinearStream, model: Model, shape: Shape) -> list[Tensor]:
    """The carried precision before the first task and after every task."""
    after = [model.alpha * torch.eye(model.d, dtype=torch.float64)]
    for task in stream.tasks:
        after.append(shape.project(after[-1] + task.sums.squared, model.alpha))
    return after


def carry(
    stream: LinearStream, model: Model, after: Sequence[Tensor], weight: float = 1.0
) -> Iterator[CarriedGaussian]:
    """The posterior after every task, in the shape of these precisions."""
    mean = torch.zeros(model.d, model.outputs, dtype=torch.float64)
    for number, task in enumerate(stream.tasks):
        prior = after[number] * (weight if number else 1.0)
        held = torch.linalg.cholesky(prior + task.sums.squared)
        mean = torch.cholesky_solve(prior @ mean + task.sums.cross, held)
        yield CarriedGaussian(mean, held, after[number + 1])


def carry_radial(
    stream: LinearStream, model: Model, shape: RadialShape, weight: float = 1.0
) -> Iterator[CarriedRadial]:
    """The radial posterior after every task."""
    q: Any = shape.start(model.d, model.outputs, model.alpha, model.noise)
    for number, task in enumerate(stream.tasks):
        q, held = shape.update(q, task.sums, model.noise, weight if number else 1.0)
        mean = q.mean.reshape(model.outputs, model.d).T
        yield CarriedRadial(mean, held, q, shape.variances(q, model.d), model.noise)
