"""Bayesian linear regression on the inputs: the posterior of `methods.bayes_linear`, by lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.bayes_linear import NormalGamma
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.job import Job
from vcl_radial.tracks.regression.lanes import Lane

LANE = Lane(fixed={"features": "inputs"}, carried=True, step_cost=0.0)


def predict(job: Job) -> Mixture:
    """Return the predictive in closed form, lane by lane."""
    (mixture,), _ = predict_in_sequence(job, [job.train])
    return mixture


def predict_in_sequence(job: Job, parts: Sequence[LaneData]) -> tuple[list[Mixture], list[int]]:
    """Return the predictive after each part of the data, and the bytes carried."""
    posteriors = first = [
        NormalGamma.prior(
            job.x.shape[-1] + 1, recipe.prior_scale, recipe.noise_shape, recipe.noise_rate
        )
        for recipe in job.recipes
    ]
    predictions: list[Mixture] = []
    for part in parts:
        rows = zip(part.x, part.y, part.points.tolist(), strict=True)
        lanes = [(_with_one(x[:n]), y[:n].double()[:, None]) for x, y, n in rows]
        posteriors = [
            q.update(lambda points=points: [points])  # type: ignore[misc]
            for q, points in zip(posteriors, lanes, strict=True)
        ]
        predicted = [q.predictive(_with_one(x)) for q, x in zip(posteriors, job.x, strict=True)]
        mean, scale, degrees = (torch.stack(t) for t in zip(*predicted, strict=True))
        predictions.append(Mixture(mean.squeeze(-1)[None], scale[None], degrees[None, :, None]))
    job.on_step(job.recipe.steps * len(parts))
    states = zip(posteriors, first, strict=True)
    return predictions, [carried_bytes(asdict(q), contents(asdict(p))) for q, p in states]


def _with_one(x: Tensor) -> Tensor:
    return torch.cat([x, torch.ones_like(x[:, :1])], dim=1).double()
