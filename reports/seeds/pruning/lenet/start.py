"""An RDP and its prior, both with given lengths of the mean direction.

The mean of a von Mises-Fisher direction has the length A(kappa) in (0, 1), whatever the dimension;
one concentration for groups of 25 and of 1250 weights means quite different noise. In the authors'
published code (github.com/ChangYong-Oh/RadiusDirectionPosteriors) the prior's concentration follows
from a length of 0.9, by almost Banerjee's formula; the paper does not state it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from reports.seeds.pruning.settings import LeNetRecipe
from vcl_radial.nn.blocks import inverse_softplus
from vcl_radial.nn.rdp import RDPBlock, RDPSettings, RDPWeights
from vcl_radial.posteriors.von_mises_fisher import concentration_for_length

_NOISE = 1e-6
"""Temporary length of a block's directions; small enough for any trained weights."""


def rdp_weights(
    weight: Tensor, bias: Tensor | None, grouping: str, recipe: LeNetRecipe
) -> RDPWeights:
    """The initial posterior over a layer's weights with these means.

    Args:
        weight: means of the weights.
        bias: means of the biases, if any.
        grouping: "row", "column" or "double".
        recipe: lengths, spread and the prior's scale.
    """
    settings = RDPSettings(grouping, _NOISE, recipe.prior_scale, recipe.prior_length)
    weights = settings.make_weights(weight, bias)
    for block in weights.factor_blocks().values():
        _set(block, recipe)
    return weights


@torch.no_grad()
def _set(block: RDPBlock, recipe: LeNetRecipe) -> None:
    D, before = block.direction.shape[1], block.posterior
    block.log_concentration.fill_(math.log(concentration_for_length(recipe.length, D)))
    block.rho.fill_(inverse_softplus(recipe.spread))
    after = block.posterior
    # The radii grow as the mean directions shrink, so that the means do not change.
    shrunk = (
        (after.factors.mean_radius() * after.direction.mean_length())
        / (before.factors.mean_radius() * before.direction.mean_length())
    ).mean()
    block.loc[:, -1] -= shrunk.log()
