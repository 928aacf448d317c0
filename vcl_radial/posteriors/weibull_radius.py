"""Weibull radii, in place of the log-normal ones of an RDP.

A Weibull number with scale lambda and shape k has the density

    k / lambda (x / lambda)^(k - 1) exp(-(x / lambda)^k),    E x^p = lambda^p Gamma(1 + p / k)

and its logarithm is a location and scale of the logarithm of an exponential number:

    log x = loc + scale log e,    e ~ Exp(1),    loc = log lambda,    scale = 1 / k

In a half-Cauchy number's r^2 = a b (see `log_normal_radius`) a and 1 / b are gamma, and here both
are Weibull. So the divergence of each is that of a Weibull number to a gamma one, finite for all k;
that of a Weibull b to an inverse gamma would be infinite for k <= 1. With g = Euler's constant,
E log e = -g, and with a = (loc - loc_p) / scale_p and t = scale / scale_p:

    KL(Weibull || Weibull)    = exp(a) Gamma(1 + t) - 1 - a + g (t - 1) - log t
    KL(Weibull || Gamma(s, 1)) = exp(loc) Gamma(1 + scale) - s loc + g (s scale - 1) - 1
                                 - log scale + log Gamma(s)

The first is Bauckhage's (2013). Eq. 50 of Oh, Adamczewski and Park (2020) quotes it with two
misprints: log(lambda_q - g / k_q) for log(lambda_q) - g / k_q, and Gamma(k_q / k_p + 1) for
Gamma(k_p / k_q + 1). As printed it is negative at some parameters, and undefined where
lambda_q <= g / k_q. The second is in Zhang et al. ("WHAI", 2018). The paper names no first prior
for Weibull radii; here it is the half-Cauchy of its section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.posteriors.radius_factors import RadiusFactors

EULER = 0.5772156649015329
"""Euler's constant, -E log e of an exponential number e."""


class Weibull(RadiusFactors):
    """Weibull factors a, and b with 1 / b Weibull: log x = loc + scale log e, - for + in row 1.

    Args:
        loc: log lambda of a, and -log lambda of 1 / b, `[..., 2, groups + 1]`.
        scale: 1 / k, positive, of the same shape.
    """

    name = "weibull"

    @staticmethod
    def noise(
        shape: Sequence[int],
        generator: torch.Generator | None,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Tensor:
        """Draw log e in row 0 and -log e in row 1, for exponential numbers e."""
        e = torch.empty(shape, dtype=dtype, device=device).exponential_(generator=generator)
        log_e = e.clamp_(min=torch.finfo(dtype).tiny).log_()
        log_e[..., 1, :].neg_()
        return log_e

    @staticmethod
    def start(share: float) -> tuple[float, float]:
        """One scale of all factors such that Var r = share (E r)^2, and log E r at loc 0.

        With x = pi scale / 2, by the reflection of the gamma function:

            E r = (x / sin x)^2,    E r^2 / (E r)^2 = (tan x / x)^2
        """
        low, high, target = 0.0, math.pi / 2, math.sqrt(1 + share)
        for _ in range(60):  # tan x / x rises from 1 to infinity
            x = (low + high) / 2
            low, high = (low, x) if math.tan(x) > target * x else (x, high)
        return 2 * x / math.pi, 2 * math.log(x / math.sin(x))

    def mean_radius(self) -> Tensor:
        """E r_g, `[..., groups]`; infinite where a scale of b is at least 2.

        E r = E a^(1/2) E b^(1/2),    E x^(1/2) = exp(loc / 2) Gamma(1 +- scale / 2)
        """
        half = self._sign() * self.scale / 2
        log_roots = self.loc / 2 + (1 + half).lgamma().where(half > -1, math.inf)
        log_mean = log_roots.sum(-2)
        return (log_mean[..., :-1] + log_mean[..., -1:]).exp()

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density in nats of each factor x > 0, with the Jacobian 1 / x of log x."""
        z = self._sign() * (x.log() - self.loc) / self.scale
        return z - z.exp() - self.scale.log() - x.log()

    def kl(self, prior: Weibull) -> Tensor:
        """KL of each factor to its Weibull prior in nats; see the head of this file."""
        a, t = self._sign() * (self.loc - prior.loc) / prior.scale, self.scale / prior.scale
        return (a + (1 + t).lgamma()).expm1() - a + EULER * (t - 1) - t.log()

    def kl_to_half_cauchy(self, scale: float) -> Tensor:
        """KL of each factor to its gamma or inverse gamma prior, in nats."""
        unit = torch.zeros_like(self.loc)
        unit[..., 0, -1] = 2 * math.log(scale)
        loc, s = self._sign() * (self.loc - unit), self.scale
        cross = (loc + (1 + s).lgamma()).exp() - loc / 2 + math.lgamma(0.5)
        return (cross + EULER * (s / 2 - 1) - 1 - s.log()).flatten(-2)

    def _sign(self) -> Tensor:
        """1 for a in row 0, -1 for b in row 1; `[2, 1]`."""
        return self.loc.new_tensor([[1.0], [-1.0]])
