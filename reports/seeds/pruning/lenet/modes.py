"""Pruning by the log of the mode of the radii of rows and columns (Oh et al. 2020, Section 3.3).

A radius is s z_g; the layer's s scales all radii equally, so that only z_g counts. It is
log-normal, z_g^2 = a_g b_g, and the log of its mode is its mean parameter less its variance:

    log mode z_g = (m_a + m_b) / 2 - (s_a^2 + s_b^2) / 4
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import torch
from torch import Tensor

from reports.seeds.pruning.lenet.network import SETS, BayesianLeNet, Kept
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.rdp import RDPBlock

GROUPS = {
    "conv1": ("conv1 rows", "conv2 columns"),
    "conv2": ("conv2 rows",),
    "inputs": ("fc1 columns",),
    "hidden": ("fc1 rows", "fc2 columns"),
}
"""Rows and columns that can drop a unit of a set: rows of its layer, columns of the next layer.

A filter of conv2 has 16 columns of fc1: the inputs, which are another set."""


@torch.no_grad()
def log_modes(block: RDPBlock) -> Tensor:
    """The log of the mode of each group's factor of the radius, z_g, `[groups]`."""
    loc, variance = block.loc[:, :-1], softplus(block.rho[:, :-1]).square()
    return loc.sum(0) / 2 - variance.sum(0) / 4


def all_log_modes(network: BayesianLeNet) -> dict[str, Tensor]:
    """The log modes of the rows and columns in `GROUPS`, on the CPU."""
    modes = {}
    for group in chain(*GROUPS.values()):
        layer, kind = group.split()
        modes[group] = log_modes(getattr(network, layer).weights.factor_blocks()[kind]).cpu()
    return modes


def scores(modes: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The strength of every unit: the smaller log mode of its row and its column."""
    return {
        name: torch.stack([modes[group] for group in groups]).amin(0)
        for name, groups in GROUPS.items()
    }


def units_above(strengths: Mapping[str, Tensor], cuts: Mapping[str, float]) -> Kept:
    """The kept units: their strength is above the cut of their set."""
    return Kept(**{name: strengths[name] > cuts.get(name, -torch.inf) for name in SETS})


def choose_cuts(
    strengths: Mapping[str, Tensor], error: Callable[[Kept], float], tolerance: float
) -> dict[str, float]:
    """Cuts that leave out as many units as the tolerance of the error allows.

    Sets are cut in turn, filters first, by bisection over the number of weakest units to leave out.
    Each set may use an equal part of the tolerance, and the unused part of earlier sets.

    Args:
        strengths: the strengths of units, by set.
        error: error of the network with these units, per cent, on held-out images.
        tolerance: largest total rise of the error, in percentage points.
    """
    cuts: dict[str, float] = {}
    whole_error = error(units_above(strengths, cuts))
    for number, name in enumerate(SETS, start=1):
        limit = whole_error + tolerance * number / len(SETS)
        ordered = strengths[name].sort().values
        dropped, most = 0, len(ordered) - 1
        while dropped < most:
            middle = (dropped + most + 1) // 2
            trial = cuts | {name: _cut_above(ordered, middle)}
            if error(units_above(strengths, trial)) <= limit:
                dropped = middle
            else:
                most = middle - 1
        cuts[name] = _cut_above(ordered, dropped)
    return cuts


def _cut_above(ordered: Tensor, dropped: int) -> float:
    """A cut above the first `dropped` strengths and below the next."""
    if dropped == 0:
        return float(ordered[0]) - 1.0
    return float(ordered[dropped - 1 : dropped + 1].double().mean())
