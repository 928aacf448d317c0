"""The Gamma posterior of the precision of the observation noise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

BATCH_STEP = 0.01
"""Step size of a mini-batch update, whose noise is that of a batch."""


class NoisePrecision:
    """q(tau) = Gamma(shape, rate) of the precision tau of Gaussian noise.

        y ~ N(f(x; w), 1 / tau),    tau ~ Gamma(shape_0, rate_0)

    For any q(w) the evidence lower bound has its maximum at

        shape = shape_0 + N / 2,    rate = rate_0 + N / 2 E_q mean_n (y_n - f(x_n; w))^2

    (Oh, Adamczewski and Park 2020, section 5.1, have the same prior and posterior, and take
    gradient steps on shape and rate). The gradient of the loss in the weights depends on tau
    through its mean shape / rate only. On batches the rate takes natural-gradient steps, which form
    a moving average of its optimum (Hoffman et al. 2013, Eq. 26).

    Args:
        points: N, a scalar, or `[R]` for R lanes.
        prior: shape_0 and rate_0, scalars or `[R]`.
        start: initial mean of tau, a scalar or `[R]`.
    """

    def __init__(
        self,
        points: Tensor,
        prior: tuple[float | Tensor, float | Tensor],
        start: float | Tensor = 1.0,
    ) -> None:
        self.points = points
        self.prior_shape = torch.as_tensor(prior[0], dtype=torch.float32).expand(points.shape)
        self.prior_rate = torch.as_tensor(prior[1], dtype=torch.float32).expand(points.shape)
        self.shape = self.prior_shape + points / 2
        self.rate = self.shape / start

    @classmethod
    def stacked(cls, lanes: Sequence[NoisePrecision]) -> NoisePrecision:
        """The noise precisions of R lanes as one, `[R]`."""
        states = [noise.state_dict() for noise in lanes]
        points, prior_shape, prior_rate, shape, rate = (
            torch.stack([state[name] for state in states]) for name in states[0]
        )
        noise = cls(points, (prior_shape, prior_rate))
        noise.shape, noise.rate = shape, rate
        return noise

    @property
    def mean(self) -> Tensor:
        """The mean E tau, in the shape of `points`."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> Tensor:
        """The mean E log tau, in the shape of `points`."""
        return torch.digamma(self.shape) - self.rate.log()

    def update(self, squared_error: Tensor, step: float = 1.0) -> None:
        """Move the fraction `step` of the way to the optimum for E_q mean_n (y_n - f_n)^2."""
        optimum = self.prior_rate + self.points / 2 * squared_error
        self.rate = torch.lerp(self.rate, optimum, step)

    def state_dict(self) -> dict[str, Tensor]:
        """N, and the Gamma distributions before and after the data."""
        gammas = {"prior_shape": self.prior_shape, "prior_rate": self.prior_rate}
        return {"points": self.points, **gammas, "shape": self.shape, "rate": self.rate}

    def carry(self, points: Tensor) -> NoisePrecision:
        """Make the posterior the prior of N new points."""
        new = NoisePrecision(points, (self.shape, self.rate))
        new.rate = new.shape / self.mean
        return new
