"""The inputs themselves."""

from __future__ import annotations

from torch import Tensor

from vcl_radial.features.base import Features


class Inputs(Features):
    """phi(x) = x, flattened.

    Args:
        size: how many numbers an input has.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """`[B, D]`."""
        return x.flatten(1)
