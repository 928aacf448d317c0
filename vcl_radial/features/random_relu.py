"""Random rectified units (Rahimi and Recht 2008; RanPAC, McDonnell et al. 2023, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features, InputsOf, moments


class RandomReLU(Features):
    """phi(x) = max(0, W (x - m) / s + b), with W ~ N(0, 1 / d) and b ~ U(-1, 1) drawn once.

    m and s are the mean and the standard deviation of all values of the first task's inputs, 0 and
    1 before it. W stays as it is drawn, so that a seed gives it; b takes in m.

    Args:
        inputs: d, the number of values of an input.
        units: D.

    Raises:
        UserError: there are none.
    """

    weight: Tensor
    bias: Tensor
    scale: Tensor

    def __init__(self, inputs: int, units: int = 2000) -> None:
        super().__init__()
        if units < 1:
            raise UserError(f"options.units = {units} must be at least 1")
        self.size = units
        self.register_buffer("weight", torch.randn(units, inputs) * inputs**-0.5)
        self.register_buffer("bias", 2 * torch.rand(units) - 1)
        self.register_buffer("scale", torch.ones(()))

    def fit(self, inputs: InputsOf) -> None:
        """Keep s, and take m into b: b - W m / s."""
        mean, deviation = moments(inputs)
        self.scale.fill_(deviation)
        self.bias.sub_(self.weight.sum(1), alpha=mean / deviation)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, units]`."""
        x, factor = x.flatten(1).to(self.bias), 1 / float(self.scale)
        return torch.addmm(self.bias, x, self.weight.T, alpha=factor).relu_()
