"""How sharp probabilities are made of a linear model's outputs, without a point that is kept.

    p(c | x) = softmax(beta f_c(x))

beta is learned from predictions of points that took no part in them, such as those of a posterior
without one point at a time. Of a task's points the NLL is summed up for a grid of values, and these
sums are all that is carried: beta is the one of the least sum over all tasks so far.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

POINTS = 2_000
"""Of a task, at least so many count, and less than twice; spread evenly over its points."""

_LEAST, _MOST, _STEPS = -3.0, 8.0, 111


class Sharpness(nn.Module):
    """beta and what it follows from.

    Attributes:
        sums: the NLL summed over all points that were seen, one for each beta of the grid; nats.
    """

    sums: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(_STEPS, dtype=torch.float64))

    @property
    def grid(self) -> Tensor:
        """The values of beta, a tenth apart in their logarithms."""
        return torch.linspace(_LEAST, _MOST, _STEPS, dtype=torch.float64).exp().to(self.sums.device)

    @property
    def beta(self) -> Tensor:
        """The value of the least sum; 1 before any point was seen."""
        if not self.sums.any():
            return torch.ones_like(self.sums[0])
        return self.grid[self.sums.argmin()]

    @torch.no_grad()
    def observe(self, outputs: Tensor, targets: Tensor) -> None:
        """Add the NLL of points that took no part in their outputs.

        Shapes: outputs `[n, C]`, targets `[n]`.
        """
        of_grid = [cross_entropy(beta * outputs, targets, reduction="sum") for beta in self.grid]
        self.sums += torch.stack(of_grid).to(self.sums)
