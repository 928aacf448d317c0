"""Bayesian linear regression with a normal-gamma prior: everything in closed form.

    y ~ N(x'w, 1/tau),    w | tau ~ N(mean, (tau precision)^-1),    tau ~ Gamma(shape, rate)

The prior is conjugate, so that a posterior is a prior of the same kind, and it does not matter in
how many parts the data come (Bishop 2006, exercises 3.12 and 3.13).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class NormalGamma:
    """A distribution over weights and noise precision; all tensors float64.

    Attributes:
        mean: `[d]`.
        precision: in units of tau, `[d, d]`.
        shape: of the Gamma distribution.
        rate: of the same.
    """

    mean: Tensor
    precision: Tensor
    shape: Tensor
    rate: Tensor

    @classmethod
    def prior(cls, d: int, prior_scale: float, shape: float, rate: float) -> NormalGamma:
        """N(0, prior_scale^2 / tau) for each of d weights."""
        return cls(
            torch.zeros(d, dtype=torch.float64),
            torch.eye(d, dtype=torch.float64) / prior_scale**2,
            torch.tensor(shape, dtype=torch.float64),
            torch.tensor(rate, dtype=torch.float64),
        )

    def update(self, x: Tensor, y: Tensor) -> NormalGamma:
        """The posterior after inputs `[n, d]` and targets `[n]`."""
        x, y = x.double(), y.double()
        precision = self.precision + x.T @ x
        mean = torch.linalg.solve(precision, self.precision @ self.mean + x.T @ y)
        # Squares of differences: the usual y'y - m'Pm cancels where the noise is small.
        moved = mean - self.mean
        squares = (y - x @ mean).square().sum() + moved @ self.precision @ moved
        return NormalGamma(mean, precision, self.shape + len(y) / 2, self.rate + squares / 2)

    def predictive(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The Student-t predictive of targets at inputs `[n, d]`: location, scale, degrees.

        St(y; 2 shape, x'mean, sqrt(rate / shape (1 + x' precision^-1 x)))
        """
        x = x.double()
        spread = 1 + (x * torch.linalg.solve(self.precision, x.T).T).sum(1)
        return x @ self.mean, (self.rate / self.shape * spread).sqrt(), 2 * self.shape
