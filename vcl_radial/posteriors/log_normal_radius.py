"""Log-normal radii, and the half-Cauchy prior on them as a product of two gamma factors.

A half-Cauchy radius r ~ C+(gamma) is r^2 = a b with a ~ Gamma(1/2, scale gamma^2) and
b ~ InverseGamma(1/2, scale 1), because |N(0, gamma^2)| / |N(0, 1)| is half-Cauchy. The divergence
from a log-normal factor to a gamma or an inverse gamma has a closed form; the divergence from a
log-normal radius to a half-Cauchy has none (Louizos, Ullrich and Welling 2017; Oh, Adamczewski and
Park 2020, section 3.1). A product of log-normal numbers is log-normal, and so is the radius:

    log r = (log a + log b) / 2 ~ N((m_a + m_b) / 2, (s_a^2 + s_b^2) / 4)

Eqs. 51 and 52 of Oh et al. omit the pi of the log-normal entropy from these divergences, and
exchange the sign of the mean in the exponent between the two. The formulas here follow from the
densities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.radius_factors import RadiusFactors

LOG_2_PI = math.log(2 * math.pi)


class LogNormal(RadiusFactors):
    """Independent positive numbers with a normal logarithm, log x ~ N(loc, scale^2).

    Args:
        loc: mean of log x, any shape; for radii that of `RadiusFactors`.
        scale: standard deviation of log x, positive, of the same shape.
    """

    name = "log-normal"

    @staticmethod
    def noise(
        shape: Sequence[int],
        generator: torch.Generator | None,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Tensor:
        """Draw standard normal noise."""
        return torch.randn(shape, generator=generator, dtype=dtype, device=device)

    @staticmethod
    def start(share: float) -> tuple[float, float]:
        """One scale of all factors such that Var r = share (E r)^2, and log E r at loc 0.

        log r has the standard deviation of one factor's log, because it is half of a sum of four.
        """
        scale = math.sqrt(math.log1p(share))
        return scale, scale**2 / 2

    @property
    def radius(self) -> LogNormal:
        """The log-normal marginal of each radius, `[..., groups]`."""
        loc = self.loc.sum(-2) / 2
        variance = self.scale.square().sum(-2) / 4
        return LogNormal(
            loc[..., :-1] + loc[..., -1:], (variance[..., :-1] + variance[..., -1:]).sqrt()
        )

    def mean_radius(self) -> Tensor:
        """E r_g, `[..., groups]`."""
        return self.radius.mean()

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density in nats of each x > 0, with the Jacobian 1 / x of log x."""
        z = (x.log() - self.loc) / self.scale
        return -z.square() / 2 - self.scale.log() - LOG_2_PI / 2 - x.log()

    def mean(self) -> Tensor:
        """The mean E x = exp(loc + scale^2 / 2)."""
        return (self.loc + self.scale.square() / 2).exp()

    def kl(self, prior: LogNormal) -> Tensor:
        """KL of each number to its log-normal prior in nats, equal to the KL of the two normals.

        (a^2 + s^2 - 1) / 2 - log s,    a = (loc - loc_p) / scale_p,   s = scale / scale_p
        """
        a, s = (self.loc - prior.loc) / prior.scale, self.scale / prior.scale
        return (a.square() + (s - 1) * (s + 1)) / 2 - s.log()

    def kl_to_half_cauchy(self, scale: float) -> Tensor:
        """KL of each factor to its gamma or inverse gamma prior, in nats."""
        groups_a, layer_a, b = (
            LogNormal(self.loc[(..., *part)], self.scale[(..., *part)])
            for part in ((0, slice(-1)), (0, slice(-1, None)), (1, slice(None)))
        )
        return torch.cat(
            [
                groups_a.kl_to_gamma(0.5, 1.0),
                layer_a.kl_to_gamma(0.5, scale**2),
                b.kl_to_inverse_gamma(0.5, 1.0),
            ],
            dim=-1,
        )

    def kl_to_gamma(self, shape: float, scale: float) -> Tensor:
        """KL of each number to Gamma(shape, scale), whose mean is shape * scale, in nats.

        k log scale + log Gamma(k) - k loc + exp(loc + s^2/2) / scale - log s - (1 + log 2 pi) / 2
        """
        return self._kl_to_gamma(self.loc - math.log(scale), shape)

    def kl_to_inverse_gamma(self, shape: float, scale: float) -> Tensor:
        """KL of each number to InverseGamma(shape, scale) in nats: 1/x ~ Gamma(shape, 1/scale)."""
        return self._kl_to_gamma(math.log(scale) - self.loc, shape)

    def _kl_to_gamma(self, loc: Tensor, shape: float) -> Tensor:
        """KL to Gamma(shape, 1), with the numbers in units of the prior's scale."""
        cross = math.lgamma(shape) - shape * loc + (loc + self.scale.square() / 2).exp()
        return cross - self.scale.log() - (1 + LOG_2_PI) / 2
