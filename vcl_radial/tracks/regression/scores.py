"""The scores of predictive distributions in the target's units."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.metrics import METRICS, conformal
from vcl_radial.metrics.rows import Intervals, Predictions
from vcl_radial.training.lane_data import LaneData

Scores = dict[str, float]
"""Scores by metric: `log_likelihood` in nats per row, `rmse` in the target's unit, ..."""


def score(predicted: Mixture, test: LaneData, y_scale: Tensor) -> list[Scores]:
    """Scores of each lane in the original units.

    Args:
        predicted: predictive distribution of every lane, `[T, R, n]`.
        test: the standardised rows to score on.
        y_scale: size of a standardised unit in original units, `[R]`.

    Returns:
        The values of the metrics of rows.
    """
    y = test.y.double()
    # Lane by lane, so that a lane's scores are bit-equal to the scores of the run alone.
    lanes = [_lane(predicted, k) for k in range(len(y))]
    log_density = torch.cat([q.log_density(row) for q, row in zip(lanes, y, strict=True)])
    means = torch.cat([q.mean.double().mean(0) for q in lanes])
    rows = Predictions(log_density, means, y, test.mean_over_points, y_scale)
    values = {
        name: torch.as_tensor(metric.function(rows)).tolist()
        for name, metric in METRICS.items()
        if metric.of == "rows" and metric.function
    }
    return [dict(zip(values, lane, strict=True)) for lane in zip(*values.values(), strict=True)]


def interval_scores(
    predicted: Sequence[Mixture], rows: Sequence[LaneData], y_scale: Tensor
) -> list[Scores]:
    """The scores of each lane's 90 % intervals, in the original units.

    Args:
        predicted: predictive distributions of the test rows and of the held-out rows,
            `[T, R, n]` each.
        rows: the standardised test rows and held-out rows; the latter calibrate intervals.
        y_scale: size of a standardised unit in original units, `[R]`.
    """
    scores = []
    for k, unit in enumerate(y_scale.tolist()):
        (on_test, y), (on_held_out, held_out_y) = (
            (_lane(q, k).split(int(data.points[k]))[0], data.y[k, : data.points[k]].double())
            for q, data in zip(predicted, rows, strict=True)
        )
        mean, spread = on_test.moments()
        lower, upper = on_test.interval(conformal.COVERAGE)
        held_out_lower, held_out_upper = on_held_out.interval(conformal.COVERAGE)
        intervals = Intervals(
            y=unit * y,
            mean=unit * mean[0],
            spread=unit * spread[0],
            lower=unit * lower[0],
            upper=unit * upper[0],
            limit=unit
            * conformal.limit_of_intervals(held_out_lower[0], held_out_upper[0], held_out_y),
        )
        scores.append(
            {
                name: metric.function(intervals)
                for name, metric in METRICS.items()
                if metric.of == "intervals" and metric.function
            }
        )
    return scores


def _lane(predicted: Mixture, k: int) -> Mixture:
    def part(t: Tensor) -> Tensor:
        return t if t.ndim < 2 or t.shape[-2] == 1 else t[..., k : k + 1, :].contiguous()

    degrees = None if predicted.degrees is None else part(predicted.degrees)
    return Mixture(part(predicted.mean), part(predicted.scale), degrees)
