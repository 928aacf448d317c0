"""The Jacobian of one lane's output in its weights."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vcl_radial.curvature.gauss_newton import scaled_jacobians
from vcl_radial.nn.lanes import Lanes

ROWS = 4096
"""Number of rows whose Jacobians are held at a time."""


def lane_network(lanes: Lanes, lane: int) -> nn.Module:
    """Copy the network of a lane, in float64."""
    lanes.write_back()
    return copy.deepcopy(lanes.networks[lane]).double()


def jacobians(module: nn.Module, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs `[B]` and their Jacobians `[B, P]`, batch by batch, for inputs `[n, d]`; float64.

    The columns are the parameters in their order.
    """
    weights = dict(module.named_parameters())
    for batch in torch.split(x.double(), ROWS):
        points = [((batch,), batch)]
        (J,) = scaled_jacobians(module, weights, points, lambda f, _: [torch.ones_like(f)])
        with torch.no_grad():
            yield module(batch).squeeze(1), J
