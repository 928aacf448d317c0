"""The inputs as features."""

from __future__ import annotations

from torch import Tensor

from vcl_radial.features.base import Features


class Inputs(Features):
    """The flattened inputs, phi(x) = x.

    Args:
        size: the number of values in an input.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """`[B, D]`."""
        return x.flatten(1)
