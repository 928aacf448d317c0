"""MC dropout (Gal and Ghahramani 2016): dropped inputs of every layer, in prediction too."""

from __future__ import annotations

from vcl_radial.mixture import Mixture
from vcl_radial.tracks.regression.layers import DropoutLayer
from vcl_radial.tracks.regression.methods.job import Job


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound of the dropout posterior and mix over masks."""
    scale, rate = job.of_lanes("prior_scale"), job.of_lanes("dropout")
    network = job.network([DropoutLayer(w, b, scale, rate) for w, b in job.initial_means()])
    noise = job.noise()
    job.fit(network, noise)
    return Mixture.under_noise(job.draws(network, job.recipe.eval_samples), noise)
