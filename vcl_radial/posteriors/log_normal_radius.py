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

from torch import Tensor

LOG_2_PI = math.log(2 * math.pi)


class LogNormal:
    """Independent positive numbers with a normal logarithm, log x ~ N(loc, scale^2).

    Args:
        loc: mean of log x, any shape.
        scale: standard deviation of log x, positive, of the same shape.
    """

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        self.loc = loc
        self.scale = scale

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
