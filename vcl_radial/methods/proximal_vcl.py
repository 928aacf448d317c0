"""Variational continual learning with proximal steps, which handle the tip of the radial KL.

With fixed scales, the KL of a group to its carried prior is a function k(r) of the distance of its
mean, r = ||a|| with a = (mean - prior_mean) / prior_scale. A radial posterior's KL has a tip,

    k'(0) ~ sqrt(pi / 2) (D - 1) / sqrt(S) > 0,    S = mean(s^2), for equal scales s

where gradient steps do not converge. Here the optimiser takes a step along the gradient of the NLL
to a', r' = ||a'||, and a proximal step of the KL then moves the group back along that ray:

    r = argmin_{r >= 0}  h/2 (r - r')^2 + w (r - r_0) k'(r_0) = max(0, r' - w k'(r_0) / h)

with r_0 the distance before the step, w = kl_weight / N, and h the optimiser's metric along
the ray, h = sum_i n_i^2 prior_scale_i^2 / rate_i. (The tangent at r_0 lies above k except for the
curvature of r^2/2: D is large, and k grows as a logarithm.) For squared distances this is a step of
weight decay that is decoupled from Adam's moments. With a tip, a group stays exactly at its prior
until the gradient of the data exceeds that of the prior (Parikh and Boyd 2014, section 6.5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from vcl_radial import native
from vcl_radial.errors import UserError
from vcl_radial.methods.tasks import Task
from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import ClosedFormGradients, PosteriorBlock
from vcl_radial.nn.lane_adam import per_lane
from vcl_radial.nn.lane_step import LaneStep
from vcl_radial.nn.lanes import LaneBlock
from vcl_radial.posteriors import Posterior

_AT_THE_TIP = 1e-4
"""Distance in units of the prior's scales below which the slope equals the slope at the tip."""


class Cone(NamedTuple):
    """Groups of weights and their carried prior; tensors `[..., groups, D]`."""

    family: type[Posterior]
    prior_family: type[Posterior]
    mean: Tensor
    scale: Tensor
    prior_mean: Tensor
    prior_scale: Tensor

    @classmethod
    def from_block(cls, block: PosteriorBlock) -> Cone:
        """The cone of a block of a network."""
        families = block.family, block.prior_family
        return cls(*families, block.mean, block.scale(), block.prior_mean, block.prior_scale)

    def shift(self) -> Tensor:
        """The shift a of each group's mean, `[..., groups, D]`."""
        return (self.mean - self.prior_mean) / self.prior_scale

    def kl_gradient(self, shift: Tensor) -> Tensor:
        """Gradient of the KL with respect to the shift, at this shift."""
        pairs = [(shift, self.scale / self.prior_scale)]
        gradients = self.family.kl_gradients(self.prior_family, pairs)
        assert gradients is not None  # the method's constructor has checked it
        ((by_shift, _),) = gradients
        return by_shift

    def slope(self, ray: Tensor, distance: Tensor) -> Tensor:
        """k'(r) of each group along a ray of length 1 at r, `[..., groups, 1]`; nats."""
        gradient = self.kl_gradient(ray * distance.clamp(min=_AT_THE_TIP))
        return (gradient * ray).sum(-1, keepdim=True)

    @torch.no_grad()
    def draw_back(self, start: Tensor, weight: Tensor | float, rates: Tensor | float) -> None:
        """Take the proximal step of the means, in place.

        Args:
            start: r_0 of each group, `[..., groups, 1]`, in units of the prior's scales.
            weight: w, the weight of the KL per point.
            rates: the optimiser's factor of the (averaged) gradient of each weight.
        """
        shift = self.shift()
        distance = _distance(shift)
        ray = shift / distance.clamp(min=torch.finfo(distance.dtype).tiny)
        stiffness = self.prior_scale.square() / rates
        metric = (ray.square() * stiffness).sum(-1, keepdim=True)
        drawn = weight * self.slope(ray, start) / metric
        # A group that has not moved has no ray, and its 0 / 0 is NaN.
        factor = (1 - drawn / distance).clamp(min=0).nan_to_num(nan=0.0)
        self.mean.copy_(self.prior_mean + factor * (self.mean - self.prior_mean))


class ProximalLaneStep(LaneStep):
    """The step of many runs at once, with Adam."""

    def means_are_free(self, block: LaneBlock) -> bool:
        """Whether the prior is carried, so that a proximal step replaces the KL's gradient."""
        return block.carried

    def step_block(self, k: int, block: LaneBlock, gradient: native.Gradient) -> None:
        """Take the step of `LaneStep`; under a carried prior, the means take a proximal step."""
        tensors = block.mean, block.scale, block.prior_mean, block.prior_scale
        cone = Cone(block.family, block.prior_family, *tensors)
        start = _distance(cone.shift()) if block.carried else None
        super().step_block(k, block, gradient)
        if start is not None:
            rates = self.adam.rates(2 * k, len(block.mean), self.rate)
            cone.draw_back(start, per_lane(self.kl_factor, block.mean), rates)


class ProximalVCL(VCL):
    """VCL in which the KL moves the means by a proximal step; the scales follow its gradient.

    Args:
        settings: settings of `Method`.

    Raises:
        UserError: the posterior's KL has no gradient in closed form, or the optimiser is neither
            Adam nor SGD.
    """

    posteriors = frozenset({"radial", "radial-eq44", "gaussian"})
    lane_step = ProximalLaneStep

    def __init__(self, network: nn.Module, **settings: Any) -> None:
        super().__init__(network, **settings)
        if not ClosedFormGradients.serves(network):
            raise UserError(
                "strategy = 'proximal_vcl' needs the gradient of the KL in closed form: set "
                "posterior = 'radial', 'radial-eq44' or 'gaussian', and prior = 'gaussian'"
            )

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise `UserError` unless it is Adam or SGD, whose metric the proximal step needs."""
        if not isinstance(optimizer, (Adam, SGD)):
            raise UserError(
                f"strategy = 'proximal_vcl' steps in the metric of Adam or SGD, not of "
                f"{type(optimizer).__name__}: give one of those"
            )

    def begin_task(self, task: Task) -> None:
        """Take the gradients over where they have a closed form."""
        super().begin_task(task)
        self.take_over(ProximalVCL)

    @torch.no_grad()
    def step(self, optimizer: Optimizer) -> None:
        """Step without the KL's gradient in the carried means, then take their proximal step."""
        weight = self.kl_weight / self.task.points
        carried = [
            block
            for block in self._blocks
            if block.carried
            and block.mean.requires_grad
            and (self._closed_form or block.mean.grad is not None)
        ]
        distances = []
        for block in carried:
            cone = Cone.from_block(block)
            shift = cone.shift()
            distances.append(_distance(shift))
            if self._closed_form is None:
                assert block.mean.grad is not None
                block.mean.grad.sub_(cone.kl_gradient(shift) / block.prior_scale, alpha=weight)
        self.step_along(optimizer, carried)
        for block, distance in zip(carried, distances, strict=True):
            Cone.from_block(block).draw_back(distance, weight, step_rates(block.mean, optimizer))


def _distance(shift: Tensor) -> Tensor:
    distance: Tensor = torch.linalg.vector_norm(shift, dim=-1, keepdim=True)
    return distance


def step_rates(parameter: Tensor, optimizer: Optimizer) -> Tensor | float:
    """The optimiser's factor of the (averaged) gradient of each weight."""
    (group,) = (g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    rate: float = group["lr"]
    if not isinstance(optimizer, Adam):
        return rate
    state = optimizer.state[parameter]
    second = state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"]
    correction = 1 - group["betas"][1] ** float(state["step"])
    rates: Tensor = rate / ((second / correction).sqrt() + group["eps"])
    return rates
