"""Adam on tensors of all lanes, with a learning rate for each lane."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial import native

BETAS, EPSILON = (0.9, 0.999), 1e-8


class LaneAdam:
    """Adam (Kingma and Ba 2015, Algorithm 1) or AMSGrad (Reddi et al. 2018, Algorithm 2).

    `torch.optim.Adam` has one learning rate per tensor, but lanes are parts of one tensor.

    Args:
        parameters: tensors `[R, ...]`, changed in place.
        amsgrad: whether to use AMSGrad instead of Adam.
    """

    def __init__(self, parameters: Sequence[Tensor], *, amsgrad: bool = False) -> None:
        self.parameters, self.amsgrad = list(parameters), amsgrad
        self.moments = [
            tuple(torch.zeros_like(p) for _ in range(3 if amsgrad else 2)) for p in self.parameters
        ]
        self.number = torch.zeros((), device=parameters[0].device, dtype=torch.float64)
        """The number of steps, on the device."""
        self.steps = 0
        """The number of steps, in Python."""

    def count(self, steps: int = 1) -> None:
        """Increase the number of steps, by one for a new step or by steps of other code."""
        self.steps += steps
        self.number += steps

    @torch.no_grad()
    def step(self, k: int, grad: Tensor, rate: Tensor) -> None:
        """Take a gradient step of the first lanes of the k-th parameter, with the rates `[R]`."""
        beta1, beta2 = BETAS
        value = self.parameters[k][: len(grad)]
        moments = [m[: len(grad)] for m in self.moments[k]]
        exp_avg, exp_avg_sq = moments[:2]
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if self.amsgrad:
            torch.maximum(moments[2], exp_avg_sq, out=moments[2])
        step_size = per_lane(rate, value) / (1 - beta1**self.number)
        value.sub_(exp_avg.div(self._denominator(k, len(grad))).mul_(step_size))

    def rates(self, k: int, lanes: int, rate: Tensor) -> Tensor:
        """The factors of the averaged gradient in a step of the k-th parameter."""
        denominator = self._denominator(k, lanes)
        return per_lane(rate, denominator) / denominator

    def _denominator(self, k: int, lanes: int) -> Tensor:
        second = self.moments[k][-1][:lanes]
        root_correction = (1 - BETAS[1] ** self.number).sqrt()
        return second.sqrt().div_(root_correction).add_(EPSILON)

    def root_second(self, k: int) -> Tensor:
        """The root of the k-th second moment, bias-corrected, `[R, ...]`."""
        return (self.moments[k][1] / (1 - BETAS[1] ** self.steps)).sqrt_()

    def lane_part(self, k: int, lane: int) -> tuple[Tensor, native.Moments]:
        """A lane's part of the k-th parameter and of its moments, for compiled steps."""
        exp_avg, exp_avg_sq, *highest = (m[lane] for m in self.moments[k])
        moments = native.Moments(exp_avg, exp_avg_sq, highest[0] if highest else None)
        return self.parameters[k][lane], moments


def per_lane(values: Tensor, like: Tensor) -> Tensor:
    """Reshape one number per lane for multiplication with `[lanes, ...]`."""
    return values[: len(like)].view(-1, *(1 for _ in like.shape[1:]))
