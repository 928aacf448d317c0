"""Variational inference with radius and direction: Oh, Adamczewski and Park 2020, section 5.1.

The last layer is mean-field Gaussian, because one output has no direction to sample; its weights
have the prior N(0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.weights import PosteriorSettings
from vcl_radial.tracks.networks import initial_noise, posterior_of
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane
from vcl_radial.tracks.regression.settings import Recipe

LANE = Lane(
    posteriors=("rdp",),
    alike={"prior_scale"},  # all lanes have one half-Cauchy prior; prior_length never differs
    carried=True,
    has_kl=True,
    step_cost=3.0,
)


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound and mix over weight samples."""
    return job.train_and_mix(make_lanes(job))


def predict_in_sequence(job: Job, parts: Sequence[LaneData]) -> tuple[list[Mixture], list[int]]:
    """Return the predictive after each part of the data, and the bytes carried."""
    return job.mix_in_sequence(make_lanes(job), parts)


def make_lanes(job: Job) -> Lanes:
    """Make the lanes before training."""
    last = PosteriorSettings("gaussian", initial_noise=initial_noise(job.recipe))
    networks = job.lanes(_settings).networks
    return Lanes([to_bayesian(network, last) for network in networks], 0)


def _settings(recipe: Recipe) -> dict[str, Any]:
    return {"posterior": posterior_of(recipe), "point_heads": True}
