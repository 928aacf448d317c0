"""Splits of a table as lanes, whole or in slices of input space.

In slices, each posterior is the prior of the next slice. The loss is measured against the posterior
of all rows at once. A conjugate linear model loses nothing; for an approximate posterior the gap is
the accumulated cost of the approximation. Both are standardised on the whole training part.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.methods.tasks import check_inputs
from vcl_radial.tracks.regression.data import RegressionData, Split, Standardiser
from vcl_radial.tracks.regression.seeds import derived
from vcl_radial.training.lane_data import LaneData


class LaneSplits:
    """Splits of a set as lanes; every split is standardised on its training rows.

    Args:
        data: the set.
        splits: split of each lane.
        validation: share of the training rows to hold out and score on, in place of the test rows;
            None to score on the test rows.
        held_out: share of the training rows to hold out beside the test rows, for the calibration
            of intervals; None to train on all of them.

    Attributes:
        held_out: the rows that are held out, standardised; None if there are none.
    """

    def __init__(
        self,
        data: RegressionData,
        splits: Sequence[int],
        validation: float | None = None,
        held_out: float | None = None,
    ) -> None:
        parts = [_part(data.splits[split], split, validation or held_out) for split in splits]
        scalers = [Standardiser.of(data.x[part.train], data.y[part.train]) for part in parts]
        self.scalers: Sequence[Standardiser] = scalers

        def lanes(rows: Sequence[Tensor]) -> LaneData:
            return LaneData.of(
                [
                    (scaler.inputs(data.x[chosen]), scaler.targets(data.y[chosen]))
                    for scaler, chosen in zip(scalers, rows, strict=True)
                ]
            )

        self.train = lanes([part.train for part in parts])
        self.test = lanes([part.test for part in parts])
        self.held_out: LaneData | None = None
        if held_out is not None:
            self.held_out = self.test
            self.test = lanes([data.splits[split].test for split in splits])
        for part in (self.train, self.test, *([] if self.held_out is None else [self.held_out])):
            check_inputs(part.x.flatten(0, 1), f"{data.name}, standardised,")
        self.y_scale = torch.stack([scaler.y_scale for scaler in scalers])

    def in_slices(self, count: int | None) -> list[LaneData]:
        """The training rows in slices of each lane; None for all rows, in their order."""
        if count is None:
            return [self.train]
        lanes = []
        for x, y, points in zip(self.train.x, self.train.y, self.train.points, strict=True):
            lanes.append([(x[rows], y[rows]) for rows in slices(x[:points], count)])
        return [LaneData.of(lane_slices) for lane_slices in zip(*lanes, strict=True)]


def _part(split: Split, number: int, validation: float | None) -> Split:
    if validation is None:
        return split
    return split.validation(validation, derived(number, "validation"))


def slices(x: Tensor, count: int) -> list[Tensor]:
    """Rows of inputs `[N, d]` in slices of equal size along their first principal component.

    The sign of the component makes its largest entry positive.
    """
    _, _, axes = torch.linalg.svd(x.double() - x.double().mean(0), full_matrices=False)
    axis = axes[0] * axes[0][axes[0].abs().argmax()].sign()
    order = (x.double() @ axis).argsort(stable=True)
    return list(torch.tensor_split(order, count))
