"""A set in slices of input space, one after the other, each posterior the prior of the next slice.

What is lost on the way is seen against the posterior of all rows at once.

For a conjugate linear model nothing is; for an approximate posterior the gap is the price of the
approximation, carried forward. Standardisation is that of the whole training part, here and there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.data import RegressionData
from vcl_radial.tracks.regression.fit import OnStep, fit
from vcl_radial.tracks.regression.methods.job import Job, derived
from vcl_radial.tracks.regression.methods.linear import predict_in_sequence
from vcl_radial.tracks.regression.methods.variational import make_network
from vcl_radial.tracks.regression.noise import NoisePrecision
from vcl_radial.tracks.regression.predictive import Mixture
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.track import LaneSplits, Scores, by_lane

METHODS = ("variational", "linear")
"""Methods whose posterior can be carried."""


def slices(x: Tensor, count: int) -> list[Tensor]:
    """Rows of inputs `[N, d]` in slices of equal size along their first principal component.

    The component points to where its largest entry is positive.
    """
    _, _, axes = torch.linalg.svd(x.double() - x.double().mean(0), full_matrices=False)
    axis = axes[0] * axes[0][axes[0].abs().argmax()].sign()
    order = (x.double() @ axis).argsort(stable=True)
    return list(torch.tensor_split(order, count))


def train_in_sequence(
    data: RegressionData,
    splits: Sequence[int],
    recipe: Recipe,
    count: int,
    seed: int = 0,
    on_step: OnStep = lambda steps: None,
) -> list[list[Scores]]:
    """The scores on all test rows after each slice, a list for each lane.

    Args:
        data: the set.
        splits: of each lane.
        recipe: of all lanes; its steps are those of one slice.
        count: of slices. At 1 this is the posterior of all rows, and takes as many steps as a
            recipe says.
        seed: see `train_and_score`.
        on_step: told of progress.
    """
    torch.set_flush_denormal(True)
    lanes = LaneSplits(data, splits)
    train = lanes.train
    parts = []
    for x, y, points in zip(train.x, train.y, train.points.tolist(), strict=True):
        parts.append([(x[rows], y[rows]) for rows in slices(x[:points], count)])
    in_order = [LaneData.of(slice_of_lanes) for slice_of_lanes in zip(*parts, strict=True)]
    go = predict_in_sequence if recipe.method == "linear" else _variational
    job = Job(
        recipes=[recipe] * len(splits),
        seeds=[derived(seed, f"split {split}") for split in splits],
        train=train,
        x=lanes.test.x,
        hidden=recipe.hidden or data.hidden,
        on_step=on_step,
    )
    after = [by_lane(m.scores(lanes.test, lanes.y_scale)) for m in go(job, in_order)]
    return [list(of_lane) for of_lane in zip(*after, strict=True)]


def _variational(job: Job, in_order: Sequence[LaneData]) -> list[Mixture]:
    """Predictions after each slice."""
    network, rates = make_network(job), job.of_lanes("learning_rate")
    noise: NoisePrecision | None = None
    predictions: list[Mixture] = []
    for part in in_order:
        if noise is None:
            noise = job.noise(part.points)
        else:
            network.carry()
            noise = noise.carry(part.points)
        before = len(predictions) * job.recipe.steps
        told = partial(lambda before, steps: job.on_step(before + steps), before)
        fit(network, noise, part, rates, job.fit_settings, told)
        draws = job.draws(network, job.recipe.eval_samples)
        predictions.append(Mixture.under_noise(draws, noise))
    return predictions
