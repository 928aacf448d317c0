"""The Laplace distribution as a posterior: weights with double exponential noise.

The family is named after its density, because the methods named `laplace-*` are Laplace
approximations, which are Gaussian. Its tails are heavier than Gaussian tails: the kurtosis is 6.

The divergences of one weight are in units of the prior, a = (mean - mean_p) / scale_p and
s = scale / scale_p. They follow from E|w - mean_p| and E (w - mean_p)^2, w ~ Laplace(mean, scale):

    to a Laplace    |a| + s exp(-|a| / s) - log s - 1       (Gil, Alajaji and Linder 2013)
    to a Gaussian   (a^2 + 2 s^2) / 2 - log s + log(2 pi) / 2 - 1 - log 2

The first is 0 at the prior only. The second has its minimum of 0.0724 nats at s = 1 / sqrt(2),
where the variances are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.base import Posterior, Prior, Scale
from vcl_radial.posteriors.gaussian import Gaussian


class DoubleExponential(Posterior):
    """Independent Laplace distributions, w ~ Laplace(mean, scale) for each weight.

    KL to a Gaussian (the first prior) and to this family (each later prior) is exact; to any other
    prior it is a Monte-Carlo estimate.
    """

    name = "double-exponential"
    has_lanes = True

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale tau / sqrt(2), since the variance of standard noise is 2."""
        return tau / math.sqrt(2)

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times standard Laplace noise, shape [n, ..., D], one normal g per number.

        The noise is -sign(g) log erfc(|g| / sqrt 2): erfc(|g| / sqrt 2) is uniform on (0, 1], and
        keeps its digits in the tail, where it is small.
        """
        g = self._randn((n, *self.mean.shape), generator)
        tail: Tensor = torch.special.erfc(g.abs() / math.sqrt(2))
        return -g.sign() * tail.log()

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis.

        log q(w) = -||z||_1 - sum log scale - D log 2,   z = (w - mean) / scale
        """
        norm = self._standardise(w).abs().sum(-1, dtype=torch.float64)
        return (-norm - self._sum_log_scale() - self.group_size * math.log(2)).to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats: sum log scale + D (1 + log 2); shape [...]."""
        constant = self.group_size * (1 + math.log(2))
        return (self._sum_log_scale() + constant).to(self.scale.dtype)

    @classmethod
    def kl_gradients(
        cls, prior: type[Posterior], pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """Gradients of the two divergences of this module.

        To a Laplace with t = |a| / s: dKL/da = sign(a) (1 - exp(-t)) and
        dKL/ds = (1 + t) exp(-t) - 1/s. To a Gaussian: dKL/da = a and dKL/ds = 2 s - 1/s.
        """
        if issubclass(prior, DoubleExponential):
            return [_gradients(a, s) for a, s in pairs]
        if issubclass(prior, Gaussian):
            return [(a, 2 * s - s.reciprocal()) for a, s in pairs]
        return None

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """KL to a prior of this family or a Gaussian, as in this module's docstring."""
        if isinstance(prior, DoubleExponential):
            a, s = self._in_units_of(prior)
            t = a.abs() / s
            # |a| + s exp(-t) - s and s - 1 - log s are both at least 0, and 0 at the prior.
            per_weight = s * (torch.expm1(-t) + t) + (s - 1) - s.log()
        elif isinstance(prior, Gaussian):
            a, s = self._in_units_of(prior)
            constant = math.log(2 * math.pi) / 2 - 1 - math.log(2)
            per_weight = a.square() / 2 + s.square() - s.log() + constant
        else:
            return None
        return per_weight.sum(-1, dtype=torch.float64).to(a.dtype)


def _gradients(a: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    t = a.abs() / s
    return -a.sign() * torch.expm1(-t), (1 + t) * torch.exp(-t) - s.reciprocal()
