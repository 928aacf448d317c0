"""Variational continual learning whose steps respect the tip of the cone (proximal steps).

With the scales held, the KL of a group to its carried prior is a function k(r) of how far its mean
has gone, r = ||a|| with a = (mean - prior_mean) / prior_scale. A radial posterior's has a tip,

    k'(0) ~ sqrt(pi / 2) (D - 1) / sqrt(S) > 0,    S = mean(s^2), for equal scales s

where a gradient step does not come to rest. Here the optimiser steps along the gradient of the NLL
to a', r' = ||a'||, and the KL then draws the group back along that ray:

    r = argmin_{r >= 0}  h/2 (r - r')^2 + w (r - r_0) k'(r_0) = max(0, r' - w k'(r_0) / h)

with r_0 the distance before the step, w = penalty_weight / N, and h the optimiser's metric along
the ray, h = sum_i n_i^2 prior_scale_i^2 / rate_i. (The tangent at r_0 lies above k but for the
curvature of r^2/2: D is large, and k grows as a logarithm.) For squared distances this is a step of
weight decay that is decoupled from Adam's moments; with a tip a group stays exactly where it was
until the data pull harder than the prior holds (Parikh and Boyd 2014, section 6.5).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial.errors import UserError
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import ClosedFormGradients, PosteriorBlock

_AT_THE_TIP = 1e-4
"""A distance, in the prior's scales, at which the slope is that of the tip."""


class ProximalVCL(VCL):
    """VCL in which the KL moves the means by a proximal step; the scales follow its gradient.

    Args:
        settings: those of `Method`.

    Raises:
        UserError: the posterior's KL has no gradient in closed form, or the optimiser is neither
            Adam nor SGD.
    """

    def __init__(self, network: nn.Module, **settings: Any) -> None:
        super().__init__(network, **settings)
        if not ClosedFormGradients.serves(network):
            raise UserError(
                "strategy = 'proximal_vcl' needs the gradient of the KL in closed form: set "
                "posterior = 'radial', 'radial-eq44' or 'gaussian'"
            )

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """See that it is Adam or SGD, in whose metric the KL draws back.

        Raises:
            UserError: it is neither.
        """
        if not isinstance(optimizer, (Adam, SGD)):
            raise UserError(
                f"strategy = 'proximal_vcl' steps in the metric of Adam or SGD, not of "
                f"{type(optimizer).__name__}: give one of those"
            )

    @torch.no_grad()
    def step(self, optimizer: Optimizer) -> None:
        """Step without the KL's gradient of the carried means, then draw these back."""
        weight = self.penalty_weight / self.task.points
        before = {}
        for block in self._blocks:
            if block.carried and block.mean.grad is not None:
                shift = _shift(block)
                before[block] = _distance(shift)
                block.mean.grad.sub_(_kl_gradient(block, shift) / block.prior_scale, alpha=weight)
        super().step(optimizer)
        for block, distance in before.items():
            draw_back(block, distance, weight, optimizer)


@torch.no_grad()
def draw_back(block: PosteriorBlock, before: Tensor, weight: float, optimizer: Optimizer) -> None:
    """The proximal step of a block's means.

    Args:
        block: with a carried prior.
        before: r_0 of each group, `[groups, 1]`, in the prior's scales.
        weight: of the KL, per point.
        optimizer: that has just moved the means.
    """
    shift = _shift(block)
    now = _distance(shift)
    ray = shift / now.clamp(min=torch.finfo(now.dtype).tiny)
    stiffness = block.prior_scale.square() / _rates(block.mean, optimizer)
    metric = (ray.square() * stiffness).sum(-1, keepdim=True)
    drawn = weight * slope(block, ray, before) / metric
    # A group that has not moved has no ray, and its 0 / 0 is no number.
    kept = (1 - drawn / now).clamp(min=0).nan_to_num(nan=0.0)
    block.mean.copy_(block.prior_mean + kept * (block.mean - block.prior_mean))


def slope(block: PosteriorBlock, ray: Tensor, distance: Tensor) -> Tensor:
    """k'(r) of each group along a ray `[groups, D]` of length 1 at r, `[groups, 1]`; nats."""
    gradient = _kl_gradient(block, ray * distance.clamp(min=_AT_THE_TIP))
    return (gradient * ray).sum(-1, keepdim=True)


def _kl_gradient(block: PosteriorBlock, shift: Tensor) -> Tensor:
    """Of the KL at means that have gone so far `[groups, D]`, with respect to the shift."""
    relative_scale = block.scale() / block.prior_scale
    gradients = block.family.kl_gradients(block.prior_family, [(shift, relative_scale)])
    assert gradients is not None  # the constructor has seen to it
    ((by_shift, _),) = gradients
    return by_shift


def _shift(block: PosteriorBlock) -> Tensor:
    return (block.mean - block.prior_mean) / block.prior_scale


def _distance(shift: Tensor) -> Tensor:
    distance: Tensor = torch.linalg.vector_norm(shift, dim=-1, keepdim=True)
    return distance


def _rates(parameter: Tensor, optimizer: Optimizer) -> Tensor | float:
    """What the optimiser multiplies the (averaged) gradient of each weight with."""
    (group,) = (g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    rate: float = group["lr"]
    if not isinstance(optimizer, Adam):
        return rate
    state = optimizer.state[parameter]
    second = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"]
    correction = 1 - group["betas"][1] ** float(state["step"])
    rates: Tensor = rate / ((second / correction).sqrt() + group["eps"])
    return rates
