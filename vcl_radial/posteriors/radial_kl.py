"""KL divergence between two radial groups, with the Jacobian term and an analytic gradient.

In the prior's units, a = (mean - mean_p) / scale_p and s = scale / scale_p, the distance of a draw
from the prior's mean is ||z_p||^2 = sum_i (a_i + s_i u_i r)^2. Expanding E log ||z_p|| to second
order about A + S r^2 gives, for D weights that share one radius,

    A = ||a||^2,  S = mean(s^2),  n = a / sqrt(A),  y = s / sqrt(S),  t = y^2,  e = t - 1,
    delta = sqrt(A / S),  beta = sum(n^2 t),  v = 2 / (D + 2) mean(e^2)

    KL = 1/2 sum(e - log t) + 1/2 (S - 1 - log S) + A / 2
         + (D - 1) [ G(delta) - (beta / D) k1(delta) - (v / 4) k2(delta) ]

with G, k1, k2 of `log_radius`. It is the sum of -sum log s + (A + S - 1)/2, which is the complete
Eq. 44 of Farquhar et al. 2020, and the change of (D - 1) E log ||z|| that Appendix C leaves out.
The terms are rearranged so that all are non-negative except the bounded second-order ones: nothing
cancels at q = p, whatever D. The KL itself is never negative.

It is exact for D = 1, for q = p, and for a = 0 with all s equal. Otherwise the error falls as 1/D
(equal scales: 0.07 nats at D = 2, 0.01 at D = 20); for widely unequal scales it is some tenths of a
nat.

The work has three parts that a fused implementation can replace one by one: statistics per group,
coefficients of the gradient per group, and the gradient per weight. The numbers per group are
float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vcl_radial.posteriors.log_radius import log_radius_gain, radius_moments
from vcl_radial.posteriors.transforms import apply


class GroupStatistics(NamedTuple):
    """The statistics of one group that its divergence needs; float64, shape [...]."""

    A: Tensor
    """||a||^2, the squared shift in units of the prior's scale"""
    S: Tensor
    """mean(s^2), the squared scale in units of the prior's scale"""
    beta: Tensor
    """sum(n^2 t): the relative squared scale along the shift; 0, and unused, without a shift"""
    spread: Tensor
    """mean(e^2): the inequality of the scales"""


class GradientCoefficients(NamedTuple):
    """Coefficients of `elementwise_gradient`, in the dtype of the weights, shape [..., 1]."""

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
        cone, the gradient in a is the subgradient 0. It can be differentiated once.
    """
    kl: Tensor = apply(_RadialKL, _at_least_float32(a), _at_least_float32(s))
    return kl


def radial_kl_gradients(pairs: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """The gradients of `radial_kl` for many blocks of groups, without its value.

    One call computes the coefficients of all groups. This takes many small operations, which cost
    as much for a single group as for all blocks together.
    """
    if not pairs:
        return []
    pairs = [(_at_least_float32(a), _at_least_float32(s)) for a, s in pairs]
    squares = [relative_squares(a, s) for a, s in pairs]
    shapes = [stats.A.shape for _, _, stats in squares]
    sizes = [shape.numel() for shape in shapes]
    stacked = GroupStatistics(
        *(
            torch.cat([part.reshape(-1) for part in parts])
            for parts in zip(*(stats for _, _, stats in squares), strict=True)
        )
    )
    group_size = torch.cat(
        [stacked.A.new_full((n,), a.shape[-1]) for n, (a, _) in zip(sizes, pairs, strict=True)]
    )
    coefficients = gradient_coefficients(stacked, group_size, pairs[0][0].dtype)
    by_block = zip(*(torch.split(c, sizes) for c in coefficients), strict=True)
    return [
        elementwise_gradient(a, s, n2, t, GradientCoefficients(*(c.view(*shape, 1) for c in block)))
        for (a, s), (n2, t, _), shape, block in zip(pairs, squares, shapes, by_block, strict=True)
    ]


def relative_squares(a: Tensor, s: Tensor) -> tuple[Tensor, Tensor, GroupStatistics]:
    """n^2 and t per weight, [..., D], and the sums per group that value and gradient need.

    PyTorch's sum adds pairwise, which keeps float32 accurate for 10^7 weights (its norm does not).
    """
    D = a.shape[-1]
    n2, t = a.square(), s.square()
    A, S = n2.sum(-1).double(), t.sum(-1).double() / D
    # A shift too small to be squared counts as 0, and so does n.
    smallest = 4 * torch.finfo(a.dtype).tiny
    A = torch.where(A > smallest, A, 0.0)
    n2.mul_(_per_group(torch.where(A > 0, 1 / A, 0.0), a))
    t.mul_(_per_group(1 / S, s))
    beta = (n2 * t).sum(-1).double()
    spread = (t - 1).square_().sum(-1).double() / D
    return n2, t, GroupStatistics(A, S, beta, spread)


def shape_term(s: Tensor, S: Tensor) -> Tensor:
    """sum(e - log t) >= 0: the cost of unequal scales. Only the value needs it; float64, [...]."""
    y = s * _per_group(S.rsqrt(), s)
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
    """The numbers per group for `elementwise_gradient`.

    D is the group size, or one size for each group.
    """
    A, S, beta, spread = stats
    delta = (A / S).sqrt()
    k = radius_moments(delta)
    k1 = delta * k.k1_over_x
    # d/d delta of G - (beta / D) k1 - (v / 4) k2
    slope = k.mills - beta / D * k.k1_slope - spread / (2 * (D + 2)) * k.k2_slope
    # n / a grows as a -> 0, but n does not. At the tip of the cone n is 0, which gives the
    # subgradient 0.
    inv_norm_a = torch.where(A > 0, A.rsqrt(), 0.0)
    per_radius = (D - 1) * S.rsqrt() * inv_norm_a
    share = (D - 1) / D
    growth = -slope * delta + 2 * k1 * beta / D + 2 * k.k2 * spread / (D + 2)
    s1 = -2 * share / (D + 2) * k.k2
    coefficients = GradientCoefficients(
        a0=1 + per_radius * (slope + 2 * k.k1_over_x * beta / D),
        a1=per_radius * (-2 / D) * k.k1_over_x,
        s0=1 + (S - 1) / D + share * growth - s1,
        s1=s1,
        s2=-2 * share * k1,
    )
    return GradientCoefficients(*(c.to(dtype).unsqueeze(-1) for c in coefficients))


def elementwise_gradient(
    a: Tensor, s: Tensor, n2: Tensor, t: Tensor, c: GradientCoefficients
) -> tuple[Tensor, Tensor]:
    """The gradients of the divergence in a and s, both [..., D]; overwrites n2 and t.

    dKL/da = a (a0 + a1 t)
    dKL/ds = (t (s0 + s1 t + s2 n^2) - 1) / s
    """
    grad_s = n2.mul_(c.s2).addcmul_(t, c.s1).add_(c.s0).mul_(t).sub_(1).div_(s)
    grad_a = t.mul_(c.a1).add_(c.a0).mul_(a)
    return grad_a, grad_s


class _RadialKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, s: Tensor) -> Tensor:
        _, _, stats = relative_squares(a, s)
        ctx.save_for_backward(a, s)
        return kl_value(stats, shape_term(s, stats.S), a.shape[-1]).to(a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        (a, s) = ctx.saved_tensors
        n2, t, stats = relative_squares(a, s)
        coefficients = gradient_coefficients(stats, a.shape[-1], a.dtype)
        grad_a, grad_s = elementwise_gradient(a, s, n2, t, coefficients)
        grad = grad.unsqueeze(-1)
        return grad_a.mul_(grad), grad_s.mul_(grad)


def _at_least_float32(x: Tensor) -> Tensor:
    """Convert to at least float32: near the tip the numbers per group overflow float16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _per_group(factor: Tensor, x: Tensor) -> Tensor:
    """Convert float64 factors per group to the dtype of x [..., D], to multiply x with."""
    return factor.to(x.dtype).unsqueeze(-1)
