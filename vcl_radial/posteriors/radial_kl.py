"""KL divergence between two radial groups, with the Jacobian term and an analytic gradient.

In the prior's units, a = (mean - mean_p) / scale_p and s = scale / scale_p, the distance of a draw
from the prior's mean is ||z_p||^2 = sum_i (a_i + s_i u_i r)^2. Expanding E log ||z_p|| to second
order about A + S r^2 gives, for D weights that share one radius,

    A = ||a||^2,  S = mean(s^2),  n = a / sqrt(A),  y = s / sqrt(S),  t = y^2,  e = t - 1,
    delta = sqrt(A / S),  beta = sum(n^2 t),  v = 2 / (D + 2) mean(e^2)

    KL = 1/2 sum(e - log t) + 1/2 (S - 1 - log S) + A / 2
         + (D - 1) [ G(delta) - (beta / D) k1(delta) - (v / 4) k2(delta) ]

with G, k1, k2 of `log_radius`. It is -sum log s + (A + S - 1)/2, the whole of Eq. 44 of Farquhar et
al. 2020, plus the change of (D - 1) E log ||z|| that Appendix C leaves out, rearranged so that
every term is non-negative but the bounded second-order ones: nothing cancels at q = p, whatever D.
The KL itself is never negative.

Exact for D = 1, for q = p, and for a = 0 with all s equal. Otherwise the error falls as 1/D (equal
scales: 0.07 nats at D = 2, 0.01 at D = 20); for widely unequal scales it is some tenths of a nat.

The work is in three parts that a fused implementation can take over one by one: statistics per
group, coefficients of the gradient per group, and the gradient per weight. Reductions over D
accumulate in float64, and the mathematics per group is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vcl_radial.posteriors.log_radius import log_radius_gain, radius_moments


class GroupStatistics(NamedTuple):
    """What the divergence of one group depends on, beside its shape term; float64, shape [...]."""

    A: Tensor
    """||a||^2, the squared shift in units of the prior's scale"""
    S: Tensor
    """mean(s^2), the squared scale in units of the prior's scale"""
    beta: Tensor
    """sum(n^2 t): the relative squared scale along the shift; 0, and unused, without a shift"""
    spread: Tensor
    """mean(e^2): how unequal the scales are"""


class GradientCoefficients(NamedTuple):
    """Coefficients of `elementwise_gradient`, in the dtype of the weights, shape [..., 1]."""

    inv_norm_a: Tensor
    inv_rms_s: Tensor
    a0: Tensor
    a1: Tensor
    s0: Tensor
    s1: Tensor
    s2: Tensor


def radial_kl(a: Tensor, s: Tensor) -> Tensor:
    """KL of a radial group to a radial prior, in nats (see the module's docstring).

    Args:
        a: (mean - mean_p) / scale_p, shape [..., D].
        s: scale / scale_p, positive, the same shape and dtype.

    Returns:
        One divergence per group, shape [...]. Its gradient is analytic; at a = 0, the tip of a
        cone, the subgradient 0 is taken for a. It can be differentiated once.
    """
    kl: Tensor = _RadialKL.apply(a, s)
    return kl


def radial_kl_gradients(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """The gradients of `radial_kl` for many blocks of groups, without its value.

    The coefficients of all groups are computed together: they are many small operations, and one
    call for all blocks costs what one call for a single group does.
    """
    if not pairs:
        return []
    statistics = [group_statistics(a, s) for a, s in pairs]
    shapes = [stats.A.shape for stats in statistics]
    sizes = [shape.numel() for shape in shapes]
    together = GroupStatistics(
        *(
            torch.cat([part.reshape(-1) for part in parts])
            for parts in zip(*statistics, strict=True)
        )
    )
    group_size = torch.cat(
        [together.A.new_full((n,), a.shape[-1]) for n, (a, _) in zip(sizes, pairs, strict=True)]
    )
    coefficients = gradient_coefficients(together, group_size, pairs[0][0].dtype)
    by_block = zip(*(torch.split(c, sizes) for c in coefficients), strict=True)
    return [
        elementwise_gradient(a, s, GradientCoefficients(*(c.view(*shape, 1) for c in block)))
        for (a, s), shape, block in zip(pairs, shapes, by_block, strict=True)
    ]


def group_statistics(a: Tensor, s: Tensor) -> GroupStatistics:
    """The sums over the weights of each group that value and gradient need."""
    D = a.shape[-1]
    A = _squared_norm(a)
    S = _squared_norm(s) / D
    y = _scaled(s, S.rsqrt())
    beta = _squared_norm(_scaled(a, _inverse_norm(A)).mul_(y))
    spread = _squared_norm(y.square_().sub_(1)) / D
    return GroupStatistics(A, S, beta, spread)


def shape_term(s: Tensor, S: Tensor) -> Tensor:
    """sum(e - log t) >= 0: what unequal scales cost. Only the value needs it; float64, [...]."""
    y = _scaled(s, S.rsqrt())
    # e as a product and log t as 2 log y: exact near y = 1, and no underflow far below it.
    return ((y - 1).mul_(y + 1).sub_(y.log_(), alpha=2)).sum(-1, dtype=torch.float64)


def kl_value(stats: GroupStatistics, shape: Tensor, D: int) -> Tensor:
    """The divergence in nats from the statistics and the `shape_term`; float64, [...]."""
    A, S, beta, spread = stats
    delta = (A / S).sqrt()
    k = radius_moments(delta)
    v = 2 / (D + 2) * spread
    log_radius = log_radius_gain(delta) - beta / D * delta * k.k1_over_x - v / 4 * k.k2
    return (shape + (S - 1 - S.log()) + A) / 2 + (D - 1) * log_radius


def gradient_coefficients(
    stats: GroupStatistics, D: int | Tensor, dtype: torch.dtype
) -> GradientCoefficients:
    """The numbers per group for `elementwise_gradient`. Only `inv_norm_a` grows as a -> 0.

    D is the group size, or one size for each group.
    """
    A, S, beta, spread = stats
    delta = (A / S).sqrt()
    k = radius_moments(delta)
    k1 = delta * k.k1_over_x
    # d/d delta of G - (beta / D) k1 - (v / 4) k2
    slope = k.mills - beta / D * k.k1_slope - spread / (2 * (D + 2)) * k.k2_slope
    inv_rms_s = S.rsqrt()
    per_radius = (D - 1) * inv_rms_s
    share = (D - 1) / D
    growth = -slope * delta + 2 * k1 * beta / D + 2 * k.k2 * spread / (D + 2)
    coefficients = (
        _inverse_norm(A),
        inv_rms_s,
        per_radius * (slope + 2 * k.k1_over_x * beta / D),
        per_radius * (-2 / D) * k.k1_over_x,
        1 + (S - 1) / D + share * growth,
        -2 * share / (D + 2) * k.k2,
        -2 * share * k1,
    )
    return GradientCoefficients(*(c.to(dtype).unsqueeze(-1) for c in coefficients))


def elementwise_gradient(a: Tensor, s: Tensor, c: GradientCoefficients) -> tuple[Tensor, Tensor]:
    """The gradient of the divergence with respect to a and s, shape [..., D] each.

    dKL/da = a + n (a0 + a1 t)
    dKL/ds = (t (s0 + s1 e + s2 n^2) - 1) / s
    """
    n = a * c.inv_norm_a
    y = s * c.inv_rms_s
    grad_s = n.square().mul_(c.s2).add_((y - 1).mul_(y + 1).mul_(c.s1)).add_(c.s0)
    t = y.square_()
    grad_s.mul_(t).sub_(1).div_(s)
    grad_a = t.mul_(c.a1).add_(c.a0).mul_(n).add_(a)
    return grad_a, grad_s


class _RadialKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, s: Tensor) -> Tensor:
        stats = group_statistics(a, s)
        ctx.save_for_backward(a, s, *stats)
        return kl_value(stats, shape_term(s, stats.S), a.shape[-1]).to(a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, s, *stats = ctx.saved_tensors
        coefficients = gradient_coefficients(GroupStatistics(*stats), a.shape[-1], a.dtype)
        grad_a, grad_s = elementwise_gradient(a, s, coefficients)
        grad = grad.unsqueeze(-1)
        return grad_a.mul_(grad), grad_s.mul_(grad)


def _squared_norm(x: Tensor) -> Tensor:
    """||x||^2 of each group as float64.

    PyTorch's sum adds pairwise, which keeps float32 right for 10^7 weights (its norm does not), and
    costs a fraction of a sum in float64.
    """
    return x.square().sum(-1).double()


def _inverse_norm(A: Tensor) -> Tensor:
    """1 / sqrt(A), and 0 at the cone's tip, which makes the subgradient there 0."""
    return torch.where(A > 0, A.rsqrt(), 0.0)


def _scaled(x: Tensor, factor: Tensor) -> Tensor:
    """X [..., D] times one float64 factor per group, in the dtype of x."""
    return x * factor.to(x.dtype).unsqueeze(-1)
