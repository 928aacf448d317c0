"""The Jacobian of one lane's output in its weights, and the linearised prediction that it makes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vcl_radial.curvature.gauss_newton import layer_passes, linear_layers
from vcl_radial.tracks.regression.network import LaneNetwork

ROWS = 4096
"""Rows whose Jacobians are held at a time."""


def lane_module(network: LaneNetwork, lane: int) -> nn.Sequential:
    """The point network of a lane, in float64."""
    modules: list[nn.Module] = []
    for weight, bias, _ in network.draw(network.noise(1)[0]):
        modules += [nn.ReLU()] if modules else []
        linear = nn.Linear(weight.shape[-1], weight.shape[-2], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(weight[lane, 0])
            linear.bias.copy_(bias[lane, 0])
        modules.append(linear)
    return nn.Sequential(*modules)


def flat_order(network: LaneNetwork, values: Tensor, lane: int) -> Tensor:
    """Values `[R, P]`, one per parameter of a point network, of a lane in a Jacobian's order."""
    parts = torch.split(values, network.sizes, dim=1)
    joint = []
    for layer, part in zip(network.layers, parts, strict=True):
        weight, bias = torch.split(part[lane], [layer.shape.numel(), layer.shape[0]])
        joint.append(torch.cat([weight.view(layer.shape), bias[:, None]], dim=1).flatten())
    return torch.cat(joint)


def jacobians(module: nn.Sequential, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs `[B]` and their Jacobians `[B, P]`, batch by batch, for inputs `[n, d]`; float64.

    A unit's weights are followed by its bias, layer by layer.
    """
    layers = linear_layers(module, dict(module.named_parameters()))
    for batch in torch.split(x.double(), ROWS):
        passes = layer_passes(
            module, layers, [((batch,), batch)], lambda f, _: [torch.ones_like(f)]
        )
        blocks = [
            (found.gradients[0].unsqueeze(2) * found.inputs.unsqueeze(1)).flatten(1)
            for _, found in passes
        ]
        with torch.no_grad():
            yield module(batch).squeeze(1), torch.cat(blocks, dim=1)
