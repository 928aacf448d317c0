"""A set in slices of input space; each posterior is the prior of the next slice.

The loss is measured against the posterior of all rows at once. A conjugate linear model loses
nothing; for an approximate posterior the gap is the accumulated cost of the approximation. Both
are standardised on the whole training part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.data import RegressionData
from vcl_radial.tracks.regression.fit import OnStep
from vcl_radial.tracks.regression.lanes import module
from vcl_radial.tracks.regression.results import Scores
from vcl_radial.tracks.regression.scores import score
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.training import LaneSplits, by_lane, make_job


class InSequence(NamedTuple):
    """A lane after all slices.

    Attributes:
        after: the scores on all test rows after each slice.
        carried_bytes: bytes that the method carries; see `vcl_radial.methods.carried`.
    """

    after: list[Scores]
    carried_bytes: int


def slices(x: Tensor, count: int) -> list[Tensor]:
    """Rows of inputs `[N, d]` in slices of equal size along their first principal component.

    The sign of the component makes its largest entry positive.
    """
    _, _, axes = torch.linalg.svd(x.double() - x.double().mean(0), full_matrices=False)
    axis = axes[0] * axes[0][axes[0].abs().argmax()].sign()
    order = (x.double() @ axis).argsort(stable=True)
    return list(torch.tensor_split(order, count))


def train_in_sequence(
    data: RegressionData,
    splits: Sequence[int],
    recipes: Sequence[Recipe],
    count: int,
    validation: float | None = None,
    on_step: OnStep = lambda steps: None,
) -> list[InSequence]:
    """Learn slice after slice in every lane.

    Args:
        data: the set.
        splits: split of each lane.
        recipes: recipe of each lane, all of one shape, with the steps of one slice.
        count: number of slices; 1 gives the posterior of all rows.
        validation: see `LaneSplits`.
        on_step: called with the steps that are done.
    """
    lanes = LaneSplits(data, splits, validation)
    train = lanes.train
    parts = []
    for x, y, points in zip(train.x, train.y, train.points.tolist(), strict=True):
        parts.append([(x[rows], y[rows]) for rows in slices(x[:points], count)])
    in_order = [LaneData.of(lane_slices) for lane_slices in zip(*parts, strict=True)]
    predict = module(recipes[0].strategy).predict_in_sequence
    job = make_job(data, splits, recipes, lanes, on_step)
    predictions, carried = predict(job, in_order)
    after = [by_lane(score(m, lanes.test, lanes.y_scale)) for m in predictions]
    results = zip(zip(*after, strict=True), carried, strict=True)
    return [InSequence(list(scores), size) for scores, size in results]
