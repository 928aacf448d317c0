"""Random rectified units (Rahimi and Recht 2008; on features: RanPAC, McDonnell et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.features.base import Features, InputsOf, moments


class RandomReLU(Features):
    """phi(x) = max(0, W (z(x) - m) / s + b), with W ~ N(0, 1 / d) and b ~ U(-1, 1) drawn once.

    z(x) are d other features, such as the inputs; m and s are the mean and the standard deviation
    of all their values over the first task, and 0 and 1 before it. W never changes, so that a seed
    determines it; b includes m.

    Args:
        of: the features z.
        units: D, the number of units.
    """

    weight: Tensor
    bias: Tensor
    scale: Tensor

    def __init__(self, of: Features, units: int = 2000) -> None:
        super().__init__()
        self.of, self.size = of, units
        self.register_buffer("weight", torch.randn(units, of.size) * of.size**-0.5)
        self.register_buffer("bias", 2 * torch.rand(units) - 1)
        self.register_buffer("scale", torch.ones(()))

    def fit(self, inputs: InputsOf) -> None:
        """Fit z, store s, and include m in b: b - W m / s."""
        self.of.fit(inputs)
        mean, deviation = moments(lambda: map(self.of, inputs()))
        self.scale.fill_(deviation)
        self.bias.sub_(self.weight.sum(1), alpha=mean / deviation)

    def forward(self, x: Tensor) -> Tensor:
        """The features `[B, units]`."""
        z, factor = self.of(x).to(self.bias), 1 / float(self.scale)
        return torch.addmm(self.bias, z, self.weight.T, alpha=factor).relu_()
