"""A radial posterior in coordinates whitened by a precision that is low rank plus diagonal.

    w = mean + scale * S u r,    S S' = C = (I + U'U)^-1

with a direction u that is uniform on the unit sphere and a radius r ~ N(0, 1) that the D weights
of a group share. A rotation does not change radial noise e = u r, so that the factor U has the
meaning of `vcl_radial.posteriors.correlated`: at U = 0 this is the radial family, and at D = 1 the
Gaussian of the same precision.

In its whitened coordinates x a prior of this family is plain radial. The divergence to it is the
divergence of the Gaussians with the same parameters plus a term in the radius. With x = n + A u r,
n = S_p^-1 (mean - mean_p) / scale_p, A = S_p^-1 diag(s) S, s = scale / scale_p, and
T = tr(A A') - D,

    KL = KL_Gauss + (D - 1) ( E log ||x|| - E log |r| - T / (2 D) )

| prior                                    | KL                                                    |
| ---------------------------------------- | ----------------------------------------------------- |
| Gaussian, low-rank Gaussian              | exact                                                 |
| this family and `Radial`                 | exact except for E log ||x||, whose estimate from     |
|                                          | draws is unbiased: `radial_low_rank_kl`               |

If posterior and prior have the same factor and all scales have the same ratio k, then A = k I and
||x||^2 depends on u through n'u alone: to second order the KL is `radial_kl` of the shift n and the
ratio k. Otherwise the eigenvalues of A A' can be far apart: along R directions a carried precision
may be thousands of times the diagonal one, and an expansion about equal eigenvalues does not hold.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vcl_radial.posteriors.base import Posterior, Prior, Scale
from vcl_radial.posteriors.correlated import Correlated, no_factor
from vcl_radial.posteriors.gaussian import Gaussian
from vcl_radial.posteriors.log_radius import log_radius_gain, mills_ratio
from vcl_radial.posteriors.low_rank import LowRank, low_rank_kl_and_excess, pad_rank
from vcl_radial.posteriors.radial import Radial, log_normaliser, radial_noise, unit_entropy
from vcl_radial.posteriors.transforms import apply


class RadialLowRank(Correlated):
    """Radial family with correlations of rank R within a group, w = mean + scale * S u r.

    The noise of one weight has standard deviation scale * sqrt(C_ii / D). Entropy and density are
    exact, and so is the KL to a Gaussian prior, mean-field or of low rank. The KL to a radial
    prior, with or without a factor, is an unbiased estimate whose noise vanishes at the prior. The
    KL to any other prior is a plain Monte-Carlo estimate.

    Args:
        mean: Location, shape [..., D].
        scale: Positive scale of the same dtype, broadcast with the mean; the radial family's scale
            where the factor is 0.
        factor: U, shape [..., R, D], of the same dtype; None for R = 0, the radial family.

    Raises:
        UserError: If shapes, dtypes or devices do not fit together.
    """

    name = "radial-low-rank"

    @classmethod
    def scale_for_weight_noise(cls, tau: Scale, D: int) -> Scale:
        """The scale is tau sqrt(D), as in `Radial`; exact where the factor is 0."""
        return Radial.scale_for_weight_noise(tau, D)

    def white_noise(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw n times u * r, one direction and one radius for each group, shape [n, ..., D]."""
        return radial_noise(self, n, generator)

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats over the last axis; at the mean it is +inf for D > 1.

        log q(w) = -N^2 / 2 - (D - 1) log N + (log det M) / 2 - sum log scale
                   + log sqrt(2/pi) - log S_D
        N^2 = ||z||^2 + ||U z||^2,   z = (w - mean) / scale,   M = I + U U'
        """
        D = self.group_size
        squares = self._squared_norm(w)
        log_q = (self._log_det() - squares) / 2 - self._sum_log_scale() + log_normaliser(D)
        if D > 1:  # 0 * log 0 counts as 0, with a gradient of 0
            log_q = log_q - (D - 1) * squares.log() / 2
        return log_q.to(w.dtype)

    def entropy(self) -> Tensor:
        """Entropy in nats: the radial entropy minus the log volume of the factor; shape [...].

        H = sum log scale - (log det M) / 2 + 1/2 + (D - 1) E log |r| - log sqrt(2/pi) + log S_D
        """
        radius_entropy = unit_entropy(self.group_size)
        return (self._sum_log_scale() + radius_entropy - self._log_det() / 2).to(self.scale.dtype)

    def closed_kl(self, prior: Prior) -> Tensor | None:
        """KL to a Gaussian prior, mean-field or of low rank; None for other priors.

        With A = ||n||^2 the expected square of the prior's radius is A + tr(A A') / D, so that

        KL = KL_Gauss + (1 - T (D - 1) / D) / 2 + constant
        """
        V = _factor(prior) if isinstance(prior, LowRank | Gaussian) else None
        if V is None:
            return None
        D = self.group_size
        assert isinstance(prior, Posterior)
        gaussian, excess = low_rank_kl_and_excess(*self._in_units_of(prior), self.factor, V)
        constant = D / 2 * math.log(2 * math.pi) + 0.5 - unit_entropy(D)
        return gaussian - excess * ((D - 1) / (2 * D)) + constant

    def kl_monte_carlo(
        self, prior: Prior, samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Unbiased estimate of KL(self || prior) in nats, shape [...]: `radial_low_rank_kl`."""
        if not isinstance(prior, RadialLowRank | Radial):
            return super().kl_monte_carlo(prior, samples, generator)
        a, s = self._in_units_of(prior)
        u = self._randn((samples, *self.mean.shape), generator)
        u /= torch.linalg.vector_norm(u, dim=-1, keepdim=True).clamp_(min=torch.finfo(u.dtype).tiny)
        r = self._randn((samples, *self.mean.shape[:-1]), generator)
        return radial_low_rank_kl(a, s, self.factor, _factor(prior), self._correlated(u), r)


def radial_low_rank_kl(a: Tensor, s: Tensor, U: Tensor, V: Tensor, y: Tensor, r: Tensor) -> Tensor:
    """Estimate the KL of a radial group of low rank to a prior of this family, in nats; [...].

    The prior's squared radius is a quadratic in the radius r of a draw,

        ||x||^2 = A + 2 r b + r^2 K,    A = a'P a,  b = a'P (s y),  K = (s y)'P (s y),  P = I + V'V

    and with G of `vcl_radial.posteriors.log_radius`, which is the mean over r where b is 0,

        E log ||x|| - E log |r| = E [ log(K) / 2 + G(sqrt(A / K)) + log(1 - rho^2) / 4 ]
        rho = 2 r b / (A + r^2 K)

    since r and -r are equally likely. The mean over the directions of the draws gives

        KL = KL_Gauss + (D - 1) ( mean[ ... - c (K - S) ] - (S - 1) / 2 ),    S = E K

    where c, the slope of log(K) / 2 + G at K = S, has no gradient. The term c (K - S) is a control
    variate: it changes no expectation, and reduces the noise of one draw from about sqrt(D) nats to
    a few. At the prior K is S for every direction, and value and gradient are exactly 0 in each
    draw.

    Args:
        a: shift (mean - mean_p) / scale_p, shape [..., D]; the subgradient at 0 is 0.
        s: ratio scale / scale_p, shape [..., D].
        U: the posterior's factor, shape [..., R, D].
        V: the prior's factor, shape [..., R_p, D]; it gets no gradient.
        y: directions S u, shape [n, ..., D].
        r: radii, shape [n, ...].
    """
    D = a.shape[-1]
    gaussian, excess = low_rank_kl_and_excess(a, s, U, V)
    S = 1 + excess.double() / D
    A, b, excess_k = _quadratic(a, s, U, V, y)
    K = 1 + excess_k
    with torch.no_grad():
        delta = (A / S).sqrt()
        slope = (1 - delta * mills_ratio(delta)) / (2 * S)
    radius: Tensor = excess_k.log1p() / 2 + apply(_Gain, A.expand_as(K), K)
    r = r.double()
    along = 2 * r * b / (A + r.square() * K).clamp(min=torch.finfo(K.dtype).tiny)
    radius = radius + torch.log1p(-along.square().clamp(max=1 - 1e-12)) / 4
    correction = (radius - slope * (K - S)).mean(0) - (S - 1) / 2
    return gaussian + ((D - 1) * correction).to(gaussian.dtype)


def _quadratic(
    a: Tensor, s: Tensor, U: Tensor, V: Tensor, y: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A, b and K - 1 in float64, with the shapes [...], [n, ...] and [n, ...].

    Since y'(I + U'U)y = 1, with e = s - 1 and E = V diag(s) - U,

        K - 1 = sum(e (s + 1) y^2) + (E y)'(E y + 2 U y)
    """
    rank = max(U.shape[-2], V.shape[-2])
    U, V = pad_rank(U, rank, a), pad_rank(V.detach(), rank, a)
    e = s - 1
    with torch.autocast(a.device.type, enabled=False):
        along_y = _along(U, y)
        change = _along(V, e * y) + _along(V - U, y)
        shift = _along(V, a)
    A = a.square().sum(-1, dtype=torch.float64) + shift.square().sum(-1, dtype=torch.float64)
    # A shift too small to be squared counts as 0.
    A = torch.where(A > 4 * torch.finfo(a.dtype).tiny, A, 0.0)
    b = (a * s * y).sum(-1, dtype=torch.float64)
    b = b + (shift * (change + along_y)).sum(-1, dtype=torch.float64)
    excess_k = (e * (s + 1) * y.square()).sum(-1, dtype=torch.float64)
    return A, b, excess_k + (change * (change + 2 * along_y)).sum(-1, dtype=torch.float64)


def _along(factor: Tensor, y: Tensor) -> Tensor:
    """The products of a factor's rows with weights: [(n,) ..., R]."""
    return (factor @ y.unsqueeze(-1)).squeeze(-1)


class _Gain(torch.autograd.Function):
    """G(sqrt(A / K)), whose slope is Mills' ratio; the subgradient at A = 0 is 0."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, K: Tensor) -> Tensor:
        delta = (A / K).sqrt()
        ctx.save_for_backward(A, K, delta)
        return log_radius_gain(delta)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        A, K, delta = ctx.saved_tensors
        slope = grad * mills_ratio(delta) / 2
        grad_a = torch.where(A > 0, slope * (A * K).rsqrt(), 0.0)
        return grad_a, -slope * delta / K


def _factor(prior: Prior) -> Tensor:
    """The prior's factor, of rank 0 where the prior has none."""
    if isinstance(prior, Correlated):
        return prior.factor
    assert isinstance(prior, Posterior)
    return no_factor(prior.mean)
