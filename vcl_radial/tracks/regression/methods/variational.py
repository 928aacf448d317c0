"""Variational inference: mean-field Gaussian (MFVI), radial, or radius and direction (RDP)."""

from __future__ import annotations

from typing import Any

from vcl_radial.mixture import Mixture
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.weights import PosteriorSettings
from vcl_radial.tracks.networks import initial_noise
from vcl_radial.tracks.regression.methods.job import Job
from vcl_radial.tracks.regression.settings import Recipe


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound and mix over weight samples."""
    return job.train_and_mix(make_lanes(job))


def make_lanes(job: Job) -> Lanes:
    """The lanes before training.

    With "rdp" the last layer is mean-field Gaussian, for its one output has no direction to be
    sampled (Oh, Adamczewski and Park 2020, section 5.1); its weights have the prior N(0, 1).
    """
    lanes = job.lanes(_settings)
    if job.recipe.strategy == "rdp_vcl":
        last = PosteriorSettings("gaussian", initial_noise=initial_noise(job.recipe))
        return Lanes([to_bayesian(network, last) for network in lanes.networks], 0)
    return lanes


def _settings(recipe: Recipe) -> dict[str, Any]:
    if recipe.strategy == "rdp_vcl":
        rdp = RDPSettings("double", initial_noise(recipe), recipe.prior_scale)
        return {"posterior": rdp, "point_heads": True}
    return {
        "posterior": PosteriorSettings(
            recipe.posterior,
            recipe.grouping,
            initial_noise=initial_noise(recipe),
            prior_scale=recipe.prior_scale,
        )
    }
