"""Random rectified units (Rahimi and Recht 2008; RanPAC, McDonnell et al. 2023, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from vcl_radial.errors import UserError
from vcl_radial.features.base import Features, InputsOf, a_seed, moments


class RandomReLU(Features):
    """phi(x) = max(0, W (x - m) / s + b), with W ~ N(0, 1 / d) and b ~ U(-1, 1) drawn once.

    d is the number of values of an input; m and s are the mean and the standard deviation of all
    values of the first task's inputs.

    Args:
        units: D.

    Raises:
        UserError: there are none.
    """

    weight: Tensor
    bias: Tensor
    seed: Tensor

    def __init__(self, units: int = 2000) -> None:
        super().__init__()
        if units < 1:
            raise UserError(f"options.units = {units} must be at least 1")
        self.size = units
        self.register_buffer("seed", a_seed())
        self.register_buffer("weight", torch.zeros(units, 0))
        self.register_buffer("bias", torch.zeros(units))

    def fit(self, inputs: InputsOf) -> None:
        """Draw W and b, with m and s in them: W / s, and b - W m / s."""
        draw = torch.Generator().manual_seed(int(self.seed))
        d = next(iter(inputs())).flatten(1).shape[1]
        mean, deviation = moments(inputs)
        weight = torch.randn(self.size, d, generator=draw) * d**-0.5 / deviation
        bias = 2 * torch.rand(self.size, generator=draw) - 1 - mean * weight.sum(1)
        self.weight, self.bias = weight.to(self.bias), bias.to(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, units]`; 0 before they are fitted."""
        if not self.weight.shape[1]:
            return self.bias.new_zeros(len(x), self.size)
        return linear(x.flatten(1).to(self.bias), self.weight, self.bias).relu_()
