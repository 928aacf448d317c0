"""The Jacobian of one lane's output in its weights, and the linearised prediction that it makes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from vcl_radial.curvature.gauss_newton import joint_weight, layer_passes, linear_layers
from vcl_radial.nn.lanes import Lanes

ROWS = 4096
"""Rows whose Jacobians are held at a time."""


def lane_network(lanes: Lanes, lane: int) -> nn.Module:
    """The network of a lane as it is now, in float64."""
    lanes.write_back()
    return copy.deepcopy(lanes.networks[lane]).double()


def flat_order(network: nn.Module, values: Mapping[str, Tensor]) -> Tensor:
    """Values of each point estimate, by name, in a Jacobian's order."""
    layers = linear_layers(network, dict(network.named_parameters()))
    return torch.cat([joint_weight(name, values).flatten() for name in layers])


def jacobians(module: nn.Module, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
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
