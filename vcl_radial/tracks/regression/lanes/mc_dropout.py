"""MC dropout (Gal and Ghahramani 2016): dropped inputs of every layer, in prediction too."""

from __future__ import annotations

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.nn.lanes import Lanes
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane

LANE = Lane(options={"rate"}, has_kl=True)

RATE = 0.1
"""Rate of dropped inputs, as in `vcl_radial.methods.mc_dropout`."""


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound of the dropout posterior and mix over masks."""
    return job.train_and_mix(make_lanes(job))


def make_lanes(job: Job) -> Lanes:
    """Make the lanes before training."""
    return job.lanes(
        lambda recipe: {"posterior": None, "dropout": recipe.options.get("rate", RATE)}
    )
