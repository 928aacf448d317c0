"""Outputs of a first layer under draws of its weights, without drawing them.

The prediction for a point needs the distribution of its outputs under the posterior, and not the
dependence between the outputs of different points. For a linear layer y = W x + b with a fixed
input x,
the J outputs under a location-scale family with normal directions are exactly

    y_j = mean_j x + b_j + sd_j(x) noise_j,    sd_j(x)^2 = sum_i s_ji^2 x_i^2 + s_j^2

with s the scales of the weights, and of the bias if it is in the same group. This holds because x
projects the weights of different outputs on orthogonal directions. The noise is

    Gaussian:  n_j ~ N(0, 1)
    radial:    r n_j / sqrt(sum_k n_k^2 + c),    r ~ N(0, 1),   c ~ chi-square(D - m)

where k counts the m outputs whose weights share a group of D weights with one radius. A bias in a
separate group is drawn as usual. So all draws together need two products with x, and a draw needs J
normals. All points share the normals: the outputs of one point have exactly the distribution under
draws of the weights, but the outputs of two points depend on each other as if their inputs were
parallel.
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
    """Inside, let linear layers with the input x draw their outputs instead of their weights.

    It applies only without gradients, and only to layers for which `FirstLayer.serves` is true. The
    weights and x must not change inside.

    Args:
        network: a network with any layers.
        x: inputs `[B, ...]` of the network's calls, one call per draw.
    """
    layers = [
        module
        for module in network.modules()
        if isinstance(module, BayesianLinear) and FirstLayer.serves(module.weights)
    ]
    for layer in layers:
        layer.draws_of = _SharedInputDraws(layer.weights, x)
    try:
        yield
    finally:
        for layer in layers:
            layer.draws_of = None


class _SharedInputDraws:
    """Draw a layer's outputs for the inputs that all draws share; return None for other inputs."""

    def __init__(self, weights: VariationalWeights, x: Tensor) -> None:
        self.weights, self.x = weights, x
        self.first: FirstLayer | None = None

    def __call__(self, x: Tensor) -> Tensor | None:
        # The inputs are alive, so no other tensor can have their address. Inputs that were cut into
        # pieces do not qualify, because a point would have several rows, which share a draw.
        is_shared_input = x.data_ptr() == self.x.data_ptr() and x.numel() == self.x.numel()
        if torch.is_grad_enabled() or not is_shared_input or x.ndim != 2 or len(x) != len(self.x):
            return None
        if self.first is None:
            self.first = FirstLayer(self.weights, x)
        return self.first.draws(1).squeeze(0)


class FirstLayer:
    """Draws of y = W x + b for fixed x.

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
            bias_in_group = bias if len(blocks) == 1 else None
            self.mean = linear(x, *weights.mean()).to(x.dtype)
            with torch.autocast(x.device.type, enabled=False):
                self.deviation = linear(x.square(), weight, bias_in_group).sqrt_()

    @staticmethod
    def serves(weights: VariationalWeights) -> bool:
        """Whether the families of the layer draw normal directions."""
        return weights.all_in_blocks and all(
            type(block) is PosteriorBlock
            and block.family.sample is Gaussian.sample
            and block.family.noise in (Gaussian.noise, Radial.noise)
            for block in weights.posterior_blocks()
        )

    @torch.no_grad()
    def draws(self, n: int) -> Tensor:
        """Draw y `[n, B, J]` n times from the global generator."""
        block, *bias_draws = self.weights.posterior_blocks()
        y = torch.addcmul(self.mean, self.deviation, self._noise(block, n).to(self.mean))
        for bias in bias_draws:
            y += bias.posterior.sample(n) - bias.mean
        return y

    def _noise(self, block: PosteriorBlock, n: int) -> Tensor:
        """Draw the noise of the outputs, `[n, 1, J]`."""
        groups, D = block.mean.shape
        normal = torch.randn(n, groups, self.outputs // groups, device=block.mean.device)
        if block.family.noise is Radial.noise:
            radius = torch.randn(n, groups, 1, device=normal.device)
            remaining = torch.full((n, groups, 1), (D - normal.shape[2]) / 2, device=normal.device)
            rest = 2 * torch._standard_gamma(remaining)
            norm = (normal.square().sum(2, keepdim=True) + rest).sqrt_()
            normal *= radius / norm
        return normal.view(n, 1, self.outputs)
