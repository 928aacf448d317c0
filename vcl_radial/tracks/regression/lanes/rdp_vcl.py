"""Variational inference with radius and direction: Oh, Adamczewski and Park 2020, section 5.1.

The last layer is mean-field Gaussian, because one output has no direction to sample; its weights
have the prior N(0, 1).
"""

from __future__ import annotations

from torch import nn

from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.weights import PosteriorSettings
from vcl_radial.tracks.networks import initial_noise, posterior_of
from vcl_radial.tracks.regression.lane_method import LaneMethod
from vcl_radial.tracks.regression.settings import Recipe


class Lanes(LaneMethod):
    """VCL with an RDP in lanes, on the evidence lower bound."""

    posteriors = ("rdp",)
    alike = ("prior_scale",)  # all lanes have one half-Cauchy prior; prior_length never differs
    carried = has_kl = True
    step_cost = 3.0

    def network(self, recipe: Recipe) -> nn.Module:
        """A network whose hidden layers have the RDP."""
        network = self.mlp(posterior=posterior_of(recipe), point_heads=True)
        last = PosteriorSettings("gaussian", initial_noise=initial_noise(self.job.recipe))
        return to_bayesian(network, last)
