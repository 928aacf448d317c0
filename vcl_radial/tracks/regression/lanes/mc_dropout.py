"""MC dropout (Gal and Ghahramani 2016): dropped inputs of every layer, in prediction too."""

from __future__ import annotations

from torch import nn

from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.settings import Recipe

RATE = 0.1
"""Rate of dropped inputs, as in `vcl_radial.methods.mc_dropout`."""


class Lanes(LaneMethod):
    """MC dropout in lanes, on the evidence lower bound of its posterior; it mixes over masks."""

    options = ("rate",)
    has_kl = True

    def network(self, recipe: Recipe) -> nn.Module:
        """A network that drops inputs of every layer."""
        return self.mlp(posterior=None, dropout=recipe.options.get("rate", RATE))
