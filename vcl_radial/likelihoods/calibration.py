"""The sharpness of probabilities from a linear model's outputs, learned without stored points.

    p(c | x) = softmax(beta f_c(x))

beta is learned from predictions for held-out points, for example leave-one-out predictions. The NLL
of a task's points is summed for a grid of values of beta. Only these sums are carried: beta is the
value with the smallest sum over all tasks so far.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

POINTS = 2_000
"""Number of calibration points per task (up to twice that), spread evenly over its points."""

_LEAST, _MOST, _STEPS = -3.0, 8.0, 111


class Sharpness(nn.Module):
    """The sharpness beta, and the NLL sums that determine it.

    Attributes:
        sums: the NLL summed over all observed points, one sum per beta of the grid, in nats.
    """

    sums: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(_STEPS, dtype=torch.float64))

    @property
    def grid(self) -> Tensor:
        """The values of beta; their logarithms are 0.1 apart."""
        return torch.linspace(_LEAST, _MOST, _STEPS, dtype=torch.float64).exp().to(self.sums.device)

    @property
    def beta(self) -> Tensor:
        """The value with the smallest sum; 1 before the first point."""
        if not self.sums.any():
            return torch.ones_like(self.sums[0])
        return self.grid[self.sums.argmin()]

    @torch.no_grad()
    def observe(self, outputs: Tensor, targets: Tensor) -> None:
        """Add the NLL of held-out points.

        Shapes: outputs `[n, C]`, targets `[n]`.
        """
        losses = [cross_entropy(beta * outputs, targets, reduction="sum") for beta in self.grid]
        self.sums += torch.stack(losses).to(self.sums)
