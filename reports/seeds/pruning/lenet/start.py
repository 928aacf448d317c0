"""An RDP that starts, and is held against a prior, at given lengths of the mean direction.

The mean of a von Mises-Fisher direction has the length A(kappa) in (0, 1), whatever the dimension;
one concentration for groups of 25 and of 1250 weights means quite different noise. In the authors'
published code (github.com/ChangYong-Oh/RadiusDirectionPosteriors) the prior's concentration follows
from a length of 0.9, by nearly Banerjee's formula; the paper does not say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vcl_radial.nn.blocks import inverse_softplus
from vcl_radial.nn.rdp import RDPBlock, RDPSettings, RDPWeights
from vcl_radial.posteriors.von_mises_fisher import concentration_for_length

_NOISE = 1e-6
"""Temporary length of a block's directions; small enough for any trained weights."""


@dataclass(frozen=True)
class RDPStart:
    """How a layer's RDP starts, and its first prior.

    Attributes:
        grouping: "row", "column" or "double".
        length: initial length of the mean directions.
        spread: standard deviation of the logarithm of each factor of a squared radius.
        prior_scale: gamma of the half-Cauchy prior.
        prior_length: length of the prior's mean directions, which are those of the posterior.
    """

    grouping: str
    length: float
    spread: float
    prior_scale: float
    prior_length: float

    def make_weights(self, weight: Tensor, bias: Tensor | None) -> RDPWeights:
        """The posterior over a layer's weights with these means."""
        settings = RDPSettings(self.grouping, _NOISE, self.prior_scale, self.prior_length)
        weights = settings.make_weights(weight, bias)
        for block in weights.factor_blocks().values():
            self._set(block)
        return weights

    @torch.no_grad()
    def _set(self, block: RDPBlock) -> None:
        D = block.direction.shape[1]
        before = block.posterior
        block.log_concentration.fill_(math.log(concentration_for_length(self.length, D)))
        block.rho.fill_(inverse_softplus(self.spread))
        after = block.posterior
        # The radii take up what the mean directions have lost, so that the means stay.
        shrunk = (
            (after.radius.mean() * after.direction.mean_length())
            / (before.radius.mean() * before.direction.mean_length())
        ).mean()
        block.loc[:, -1] -= shrunk.log()
