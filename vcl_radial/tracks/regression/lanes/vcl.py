"""Variational inference with a mean-field Gaussian (MFVI) or a radial posterior."""

from __future__ import annotations

from collections.abc import Sequence

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.nn.lanes import Lanes
from vcl_radial.tracks.networks import posterior_of
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane

LANE = Lane(posteriors=("gaussian", "radial"), carried=True, has_kl=True)


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound and mix over weight samples."""
    return job.train_and_mix(make_lanes(job))


def predict_in_sequence(job: Job, parts: Sequence[LaneData]) -> tuple[list[Mixture], list[int]]:
    """Return the predictive after each part of the data, and the bytes carried."""
    return job.mix_in_sequence(make_lanes(job), parts)


def make_lanes(job: Job) -> Lanes:
    """Make the lanes before training."""
    return job.lanes(lambda recipe: {"posterior": posterior_of(recipe)})
