"""Outputs of a first layer under draws of its weights, without drawing them.

A prediction of a point needs the distribution of its outputs under the posterior, and nothing of
how outputs of different points go together. Of a linear layer y = W x + b whose input x is given,
the J outputs under a location-scale family with normal directions are exactly

    y_j = mean_j x + b_j + sd_j(x) noise_j,    sd_j(x)^2 = sum_i s_ji^2 x_i^2 + s_j^2

with s the scales of the weights and of the bias where that is of the same group, for the directions
in which x looks at the weights of different outputs are orthogonal. The noise is

    Gaussian:  n_j ~ N(0, 1)
    radial:    r n_j / sqrt(sum_k n_k^2 + c),    r ~ N(0, 1),   c ~ chi-square(D - m)

where k counts the m outputs whose weights share the group of D weights, and its radius. A bias in a
group of its own is drawn as ever. So two products with x serve all draws, and a draw costs J
normals. They are the same for all points: each point's outputs have the distribution that draws of
the weights give, while those of two points go together as if their inputs were parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.linear import BayesianLinear
from vcl_radial.nn.weights import VariationalWeights
from vcl_radial.posteriors import Gaussian, Radial


@contextmanager
def shared_inputs(network: nn.Module, x: Tensor) -> Iterator[None]:
    """Inside, linear layers that are given x as it is take no draws of their weights for it.

    So it is only without gradients, and where `FirstLayer.serves` the layer. Nobody may change the
    weights or x inside.

    Args:
        network: with any layers.
        x: inputs `[B, ...]` that the network is called with, once for each draw.
    """
    layers = [
        module
        for module in network.modules()
        if isinstance(module, BayesianLinear) and FirstLayer.serves(module.weights)
    ]
    for layer in layers:
        layer.draws_of = _DrawsOf(layer.weights, x)
    try:
        yield
    finally:
        for layer in layers:
            layer.draws_of = None


class _DrawsOf:
    """What a layer gives for the inputs that all draws share; None for any other."""

    def __init__(self, weights: VariationalWeights, x: Tensor) -> None:
        self.weights, self.x = weights, x
        self.first: FirstLayer | None = None

    def __call__(self, x: Tensor) -> Tensor | None:
        # The inputs are alive, so that no other tensor can lie where they lie; and of what they are
        # cut into a point would have several rows, which share a draw.
        same = x.data_ptr() == self.x.data_ptr() and x.numel() == self.x.numel()
        if torch.is_grad_enabled() or not same or x.ndim != 2 or len(x) != len(self.x):
            return None
        if self.first is None:
            self.first = FirstLayer(self.weights, x)
        return self.first.draws(1).squeeze(0)


class FirstLayer:
    """Draws of y = W x + b for given x.

    Args:
        weights: the posterior over W `[J, I]` and b.
        x: inputs `[B, I]`.
    """

    def __init__(self, weights: VariationalWeights, x: Tensor) -> None:
        self.weights = weights
        self.outputs = weights.shape[0]
        with torch.no_grad():
            blocks = weights.posterior_blocks()
            weight, bias = weights.split([block.scale().square() for block in blocks])
            in_group = bias if len(blocks) == 1 else None
            self.mean = linear(x, *weights.mean()).to(x.dtype)
            with torch.autocast(x.device.type, enabled=False):
                self.deviation = linear(x.square(), weight, in_group).sqrt_()

    @staticmethod
    def serves(weights: VariationalWeights) -> bool:
        """Whether the families of the layer draw normal directions, as these classes do."""
        return weights.all_in_blocks and all(
            type(block) is PosteriorBlock
            and block.family.sample is Gaussian.sample
            and block.family.noise in (Gaussian.noise, Radial.noise)
            for block in weights.posterior_blocks()
        )

    @torch.no_grad()
    def draws(self, n: int) -> Tensor:
        """Y `[n, B, J]` under n draws, from the global generator."""
        block, *of_bias = self.weights.posterior_blocks()
        y = torch.addcmul(self.mean, self.deviation, self._noise(block, n).to(self.mean))
        for bias in of_bias:
            y += bias.posterior.sample(n) - bias.mean
        return y

    def _noise(self, block: PosteriorBlock, n: int) -> Tensor:
        """`[n, 1, J]`."""
        groups, D = block.mean.shape
        normal = torch.randn(n, groups, self.outputs // groups, device=block.mean.device)
        if block.family.noise is Radial.noise:
            radius = torch.randn(n, groups, 1, device=normal.device)
            left = torch.full((n, groups, 1), (D - normal.shape[2]) / 2, device=normal.device)
            rest = 2 * torch._standard_gamma(left)
            norm = (normal.square().sum(2, keepdim=True) + rest).sqrt_()
            normal *= radius / norm
        return normal.view(n, 1, self.outputs)
