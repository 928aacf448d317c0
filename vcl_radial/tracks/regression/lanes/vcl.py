"""Variational inference with a mean-field Gaussian (MFVI) or a radial posterior."""

from __future__ import annotations

from torch import nn

from vcl_radial.tracks.networks import posterior_of
from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.settings import Recipe


class Lanes(LaneMethod):
    """VCL in lanes, on the evidence lower bound."""

    posteriors = ("gaussian", "radial")
    carried = has_kl = True

    def network(self, recipe: Recipe) -> nn.Module:
        """A network whose weights have the posterior."""
        return self.mlp(posterior=posterior_of(recipe))
