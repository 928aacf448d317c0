"""Adam on one tensor of all lanes' parameters, with a learning rate for each lane."""

from __future__ import annotations

import torch
from torch import Tensor

BETAS, EPSILON = (0.9, 0.999), 1e-8


class LaneAdam:
    """Kingma and Ba 2015, Algorithm 1, on `[R, P]`.

    `torch.optim.Adam` has one learning rate for a tensor, and lanes are rows of one.

    Args:
        parameters: `[R, P]`, changed in place.
        rates: the learning rate of each lane, `[R]`.
    """

    def __init__(self, parameters: Tensor, rates: Tensor) -> None:
        self.parameters, self.rates = parameters, rates[:, None]
        self.first = torch.zeros_like(parameters)
        self.second = torch.zeros_like(parameters)
        self.steps = 0

    @torch.no_grad()
    def step(self, gradient: Tensor, share: float = 1.0) -> None:
        """Step against the gradient `[R, P]` with this share of the learning rates."""
        self.steps += 1
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        size = self.rates * (share / (1 - BETAS[0] ** self.steps))
        self.parameters.sub_(self.first.div(self.root_second().add_(EPSILON)).mul_(size))

    def root_second(self) -> Tensor:
        """The root of the second moment, corrected for its start at 0, `[R, P]`."""
        return (self.second / (1 - BETAS[1] ** self.steps)).sqrt_()
