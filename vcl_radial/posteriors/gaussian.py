"""The mean-field Gaussian posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.base import Posterior, Prior, Scale


class Gaussian(Posterior):
    """Mean-field Gaussian, w ~ N(mean, scale^2) for each weight.

    KL to another Gaussian is exact; to any other prior it is a Monte-Carlo estimate.
    """

    name = "gaussian"
    has_lanes = True

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale is tau: the noise of one weight does not depend on the size of its group."""
        return tau

    def noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times standard normal noise, shape [n, ..., D]."""
        return self._randn((n, *self.mean.shape), generator)

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis.

        log q(w) = -||z||^2 / 2 - sum log scale - D/2 log(2 pi),   z = (w - mean) / scale
        """
        squared = self._standardise(w).square().sum(-1, dtype=torch.float64)
        constant = self.group_size / 2 * math.log(2 * math.pi)
        return (-squared / 2 - self._sum_log_scale() - constant).to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats: sum log scale + D/2 (1 + log(2 pi)); shape [...]."""
        constant = self.group_size / 2 * (1 + math.log(2 * math.pi))
        return (self._sum_log_scale() + constant).to(self.scale.dtype)

    @classmethod
    def kl_gradients(
        cls, prior: type[Posterior], pairs: Sequence[tuple[Tensor, Tensor]]
    ) -> list[tuple[Tensor, Tensor]] | None:
        """The gradients for a Gaussian prior, dKL/da = a and dKL/ds = s - 1/s."""
        if not issubclass(prior, Gaussian):
            return None
        return [(a, s.sub_(s.reciprocal())) for a, s in pairs]

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """The KL to a Gaussian prior, 1/2 sum(a^2 + s^2 - 1 - 2 log s)."""
        if not isinstance(prior, Gaussian):
            return None
        a, s = self._in_units_of(prior)
        # s^2 - 1 as a product: near s = 1 nothing cancels, and the gradient at s = 1 is exactly 0.
        per_weight = a.square() + (s - 1) * (s + 1) - 2 * s.log()
        return (per_weight.sum(-1, dtype=torch.float64) / 2).to(a.dtype)
