"""The angle between a von Mises-Fisher draw and its mean direction: draws and their gradient.

The density of the angle is p(theta) ~ exp(kappa cos theta) sin(theta)^(D-2) on [0, pi].

Draws follow Wood (1994) and are exact in any dimension. The proposal moves the angle theta_0 of a
uniform direction towards the mean: tan(theta / 2) = sqrt(b) tan(theta_0 / 2).

Their gradient is implicit, from the distribution function F: d theta / d kappa = -dF/dkappa / p.
The gradient of the accepted proposal would not include how kappa changes the acceptance. Naesseth
et al. (2017), and Eq. 20 of Oh, Adamczewski and Park (2020), add this term to the gradient of the
loss; the implicit gradient needs no such term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vcl_radial.posteriors.bessel import ratio_over_x
from vcl_radial.posteriors.quadrature import gauss_legendre
from vcl_radial.posteriors.transforms import apply

# The integrand of `angle_slope` falls at least as fast as a normal density. It is integrated over
# this many standard deviations; with these nodes the error is 1e-7.
_REACH = 7.0
_NODES = 16
# At least 63 per cent of the proposals are accepted, so nearly every draw takes one round.
_PROPOSALS = 8


def with_gradient(angle: Tensor, concentration: Tensor, D: int) -> Tensor:
    """Angles that `draw_angle` drew, differentiable in the concentration."""
    differentiable: Tensor = apply(_Angle, concentration, angle, D)
    return differentiable


@torch.no_grad()
def draw_angle(
    shape: Sequence[int],
    concentration: Tensor,
    D: int,
    generator: torch.Generator | Sequence[torch.Generator] | None = None,
) -> Tensor:
    """Draw theta in float64, without a gradient; see the module's docstring.

    Each draw uses as many random numbers as it needs.

    Args:
        shape: shape of the draws; the concentration broadcasts to it.
        concentration: kappa >= 0, on the device of the draws; a draw is nan where it is not finite.
        D: the dimension, at least 2.
        generator: one generator, or one per entry of the first axis, so that its draws depend on
            it alone.
    """
    kappa = concentration.double().expand(*shape).reshape(-1, 1)
    # No proposal would ever be accepted; with nan, training reports that it has diverged.
    kappa = kappa.where(kappa.isfinite(), math.nan)
    b = (D - 1) / (2 * kappa + (4 * kappa.square() + (D - 1) ** 2).sqrt())
    angle = torch.empty_like(kappa).squeeze(1)
    pending = torch.arange(len(kappa), device=kappa.device)
    generators = generator if isinstance(generator, Sequence) else [generator]
    counts = [len(kappa) // len(generators)] * len(generators)
    lane = torch.arange(len(generators), device=kappa.device).repeat_interleave(max(1, counts[0]))
    while len(pending):
        uniform2, exponential = _proposals(counts, D, kappa.device, generators)
        stretched2 = b * uniform2
        # The gap is cos theta - (1 - b) / (1 + b), which is 0 at the angle with the highest
        # acceptance; the share is the acceptance rate at theta.
        cosine_gap = 2 * b / (1 + b) - 2 * stretched2 / (1 + stretched2)
        factor = (1 + b) / 2 + (1 - b.square()) / 2 * uniform2 / (1 + stretched2)
        log_share = kappa * cosine_gap + (D - 1) * factor.log()
        accepted = exponential > -log_share
        first = accepted.to(torch.uint8).argmax(1, keepdim=True)
        angle[pending] = 2 * stretched2.gather(1, first).squeeze(1).sqrt().atan()
        rejected = ~(accepted.any(1) | kappa.isnan().squeeze(1))
        pending, kappa, b = pending[rejected], kappa[rejected], b[rejected]
        counts = torch.bincount(lane[pending], minlength=len(generators)).tolist()
    return angle.view(*shape)


def _proposals(
    counts: Sequence[int],
    D: int,
    device: torch.device,
    generators: Sequence[torch.Generator | None],
) -> tuple[Tensor, Tensor]:
    """Proposals for `counts` draws of each generator, `[draws, proposals]` in float64.

    Returns:
        tan(theta_0 / 2)^2 for the angle theta_0 between a normal vector and an axis, and a standard
        exponential variable.
    """
    parts = []
    for count, generator in zip(counts, generators, strict=True):
        shape = count, _PROPOSALS
        along = torch.randn(shape, generator=generator, dtype=torch.float64, device=device)
        chi = torch._standard_gamma(torch.full_like(along, (D - 1) / 2), generator=generator)
        parts.append((along, chi, torch.empty_like(along).exponential_(generator=generator)))
    along, half_square, exponential = (torch.cat(lanes) for lanes in zip(*parts, strict=True))
    # Half a chi-square number with D - 1 degrees of freedom; it can underflow for D = 2.
    across2 = 2 * half_square.clamp(min=1e-30)
    length = (along.square() + across2).sqrt()
    # The two forms are equal; each is exact where the other cancels.
    uniform2 = torch.where(
        along > 0, across2 / (length + along).square(), (length - along).square() / across2
    )
    return uniform2, exponential


def angle_slope(angle: Tensor, concentration: Tensor, D: int) -> Tensor:
    """The implicit gradient d theta / d kappa <= 0; float64, shaped like the angle.

    d theta / d kappa = -1 / p(theta) int_0^theta (cos t - A) p(t) dt,    A = E cos theta

    The integral over the whole range is 0, so the integral from theta away from the mean gives the
    same value, and all its terms have one sign.
    """
    kappa = concentration.double()
    mean_cosine = kappa * ratio_over_x(D / 2, kappa)
    nodes, weights = gauss_legendre(_NODES, angle.device)
    reach = _REACH * kappa.clamp(min=max(D - 2, 1)).rsqrt()
    inwards = angle.cos() > mean_cosine
    span = torch.where(
        inwards, -torch.minimum(angle, reach), torch.minimum(math.pi - angle, reach)
    ).unsqueeze(-1)
    theta, kappa, mean_cosine = angle.unsqueeze(-1), kappa.unsqueeze(-1), mean_cosine.unsqueeze(-1)
    t = theta + span * nodes
    log_density = -2 * kappa * ((t + theta) / 2).sin() * ((t - theta) / 2).sin()
    if D > 2:
        log_density = log_density + (D - 2) * (t.sin() / theta.sin()).log()
    integrand = (t.cos() - mean_cosine).abs() * log_density.exp()
    slope: Tensor = -(weights * span.abs() * integrand).sum(-1)
    return slope


class _Angle(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, concentration: Tensor, angle: Tensor, D: int) -> Tensor:
        ctx.D = D
        ctx.save_for_backward(concentration, angle)
        return angle.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        concentration, angle = ctx.saved_tensors
        slope = angle_slope(angle, concentration, ctx.D)
        return (grad * slope).sum_to_size(concentration.shape).to(concentration.dtype), None, None
