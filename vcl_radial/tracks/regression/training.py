"""Runs of the regression track: lanes trained together and scored in the original units."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.methods.tasks import check_inputs
from vcl_radial.tracks.regression.batches import LaneData
from vcl_radial.tracks.regression.data import RegressionData, Split, Standardiser
from vcl_radial.tracks.regression.fit import OnStep
from vcl_radial.tracks.regression.job import Job, derived
from vcl_radial.tracks.regression.lanes import module
from vcl_radial.tracks.regression.results import Scores
from vcl_radial.tracks.regression.scores import score
from vcl_radial.tracks.regression.settings import Recipe


class LaneSplits:
    """Splits of a set as lanes; every split is standardised on its training rows.

    Args:
        data: the set.
        splits: split of each lane.
        validation: share of the training rows to hold out and score on, in place of the test rows;
            None to score on the test rows.
    """

    def __init__(
        self, data: RegressionData, splits: Sequence[int], validation: float | None = None
    ) -> None:
        parts = [_part(data.splits[split], split, validation) for split in splits]
        scalers = [Standardiser.of(data.x[part.train], data.y[part.train]) for part in parts]

        def lanes(rows: Sequence[Tensor]) -> LaneData:
            return LaneData.of(
                [
                    (scaler.inputs(data.x[chosen]), scaler.targets(data.y[chosen]))
                    for scaler, chosen in zip(scalers, rows, strict=True)
                ]
            )

        self.train = lanes([part.train for part in parts])
        self.test = lanes([part.test for part in parts])
        for part in (self.train, self.test):
            check_inputs(part.x.flatten(0, 1), f"{data.name}, standardised,")
        self.y_scale = torch.stack([scaler.y_scale for scaler in scalers])


def _part(split: Split, number: int, validation: float | None) -> Split:
    if validation is None:
        return split
    return split.validation(validation, derived(number, "validation"))


def train_and_score(
    data: RegressionData,
    splits: Sequence[int],
    recipes: Sequence[Recipe],
    validation: float | None = None,
    on_step: OnStep = lambda steps: None,
) -> list[Scores]:
    """Train lanes on all rows at once, and return the scores of every lane.

    Args:
        data: the set.
        splits: split of each lane.
        recipes: recipe of each lane, all of one shape.
        validation: see `LaneSplits`.
        on_step: called with the steps that are done.
    """
    lanes = LaneSplits(data, splits, validation)
    job = make_job(data, splits, recipes, lanes, on_step)
    predicted = module(recipes[0].strategy).predict(job)
    return by_lane(score(predicted, lanes.test, lanes.y_scale))


def split_seed(split: int) -> int:
    """The seed of all random numbers in the training on a split."""
    return derived(0, f"split {split}")


def make_job(
    data: RegressionData,
    splits: Sequence[int],
    recipes: Sequence[Recipe],
    lanes: LaneSplits,
    on_step: OnStep,
) -> Job:
    """Make the job; the split's number seeds a lane's initial weights, batches and draws."""
    torch.set_flush_denormal(True)
    return Job(
        recipes=recipes,
        seeds=[split_seed(split) for split in splits],
        train=lanes.train,
        x=lanes.test.x,
        hidden=recipes[0].hidden or [data.hidden],
        on_step=on_step,
    )


def by_lane(scores: dict[str, Tensor]) -> list[Scores]:
    """Scores `[R]` of each metric as one dictionary per lane."""
    lists = {metric: values.tolist() for metric, values in scores.items()}
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]
