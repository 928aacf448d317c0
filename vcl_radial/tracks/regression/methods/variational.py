"""Variational inference: mean-field Gaussian (MFVI), radial, or radius and direction (RDP)."""

from __future__ import annotations

import torch

from vcl_radial.mixture import Mixture
from vcl_radial.tracks.regression.layers import LaneLayer
from vcl_radial.tracks.regression.methods.job import Job
from vcl_radial.tracks.regression.network import LaneNetwork
from vcl_radial.tracks.regression.variational_layers import DirectionalLayer, LocationScaleLayer


def predict(job: Job) -> Mixture:
    """Train on the evidence lower bound and mix over weight samples."""
    network, noise = make_network(job), job.noise()
    job.fit(network, noise)
    return Mixture.under_noise(job.draws(network, job.recipe.eval_samples), noise)


def make_network(job: Job) -> LaneNetwork:
    """The lanes before training.

    With "rdp" the last layer is mean-field Gaussian, for its one output has no direction to be
    sampled (Oh, Adamczewski and Park 2020, section 5.1); its weights have the prior N(0, 1).
    """
    recipe, scale = job.recipe, job.of_lanes("prior_scale")
    means = job.initial_means()
    if recipe.posterior == "rdp":
        *hidden, (weight, bias) = means
        noise = recipe.initial_noise
        last = LocationScaleLayer(weight, bias, torch.ones_like(scale), "gaussian", "layer", noise)
        return job.network([*(DirectionalLayer(w, b, scale, noise) for w, b in hidden), last])
    layers: list[LaneLayer] = [
        LocationScaleLayer(
            weight, bias, scale, recipe.posterior, recipe.grouping, recipe.initial_noise
        )
        for weight, bias in means
    ]
    return job.network(layers)
