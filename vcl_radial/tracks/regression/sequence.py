"""A set in slices of input space, one after the other, each posterior the prior of the next slice.

What is lost on the way is seen against the posterior of all rows at once.

For a conjugate linear model nothing is; for an approximate posterior the gap is the price of the
approximation, carried forward. Standardisation is that of the whole training part, here and there.
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
        carried_bytes: see `vcl_radial.methods.carried`.
    """

    after: list[Scores]
    carried_bytes: int


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
    recipes: Sequence[Recipe],
    count: int,
    validation: float | None = None,
    on_step: OnStep = lambda steps: None,
) -> list[InSequence]:
    """Learn slice after slice in every lane.

    Args:
        data: the set.
        splits: of each lane.
        recipes: of each lane, all of one shape; their steps are those of one slice.
        count: of slices. At 1 this is the posterior of all rows, and takes as many steps as a
            recipe says.
        validation: see `LaneSplits`.
        on_step: called with the steps that are done.
    """
    lanes = LaneSplits(data, splits, validation)
    train = lanes.train
    parts = []
    for x, y, points in zip(train.x, train.y, train.points.tolist(), strict=True):
        parts.append([(x[rows], y[rows]) for rows in slices(x[:points], count)])
    in_order = [LaneData.of(slice_of_lanes) for slice_of_lanes in zip(*parts, strict=True)]
    predict = module(recipes[0].strategy).predict_in_sequence
    job = make_job(data, splits, recipes, lanes, on_step)
    predictions, carried = predict(job, in_order)
    after = [by_lane(score(m, lanes.test, lanes.y_scale)) for m in predictions]
    of_lanes = zip(zip(*after, strict=True), carried, strict=True)
    return [InSequence(list(scores), count) for scores, count in of_lanes]
