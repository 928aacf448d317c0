"""Scores of predicted classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from vcl_radial.errors import Diverged
from vcl_radial.metrics import METRICS

Score = Callable[[Tensor, Tensor], Tensor | float]

SCORES: Mapping[str, Score] = {
    name: m.function for name, m in METRICS.items() if m.of == "points" and m.function
}


def scores_of(
    predictions: Tensor,
    labels: Tensor,
    sampling: Tensor | None = None,
    scores: Mapping[str, Score] = SCORES,
) -> dict[str, float]:
    """The scores of a task's points: accuracy, ECE and sampling in per cent, NLL in nats.

    Args:
        predictions: log-probabilities, `[B, C]`.
        labels: `[B]`.
        sampling: change of the predictions by draws of the weights, `[B]` in per cent; its mean is
            a score.
        scores: functions of log-probabilities and labels, by name.

    Raises:
        Diverged: a prediction is not a number.
    """
    if torch.isnan(predictions).any():
        raise Diverged(
            "predictions are not numbers: the weights diverged in training; try a smaller "
            "learning_rate"
        )
    values = {name: float(score(predictions, labels)) for name, score in scores.items()}
    if sampling is not None:
        values["sampling"] = float(sampling.mean())
    return values
