"""Scores of a linear model's predictions, by the kind of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from reports.price.tasks import Points
from vcl_radial import metrics
from vcl_radial.data.fundus.table import REFERABLE_FROM
from vcl_radial.likelihoods.calibration import Sharpness
from vcl_radial.metrics.referral import auc


class Score(NamedTuple):
    """The score of a stream.

    Attributes:
        of: function of outputs `[n, C]` and targets `[n]`.
        heading: heading of a table's column, with the unit.
        higher_is_better: whether higher scores are better.
        decimals: decimals in a table.
    """

    of: Callable[[Tensor, Tensor], float]
    heading: str
    higher_is_better: bool = True
    decimals: int = 1


def _auc(outputs: Tensor, y: Tensor) -> float:
    # The outputs approximate the levels' probabilities.
    return float(auc((y >= REFERABLE_FROM).numpy(), outputs[:, REFERABLE_FROM:].sum(1).numpy()))


def _rmse(outputs: Tensor, y: Tensor) -> float:
    return float((outputs[:, 0] - y).square().mean().sqrt())


SCORES: Mapping[str, Score] = {
    "accuracy": Score(metrics.accuracy, "accuracy (%)"),
    "auc": Score(_auc, "AUC (%)"),
    "rmse": Score(_rmse, "RMSE (standard deviations)", higher_is_better=False, decimals=3),
}


class Prediction(NamedTuple):
    """Predictions of a model for points.

    Attributes:
        mean: mean of the outputs, `[n, C]`.
        spread: 1 + h, the variance of a target in units of the noise, `[n]`.
    """

    mean: Tensor
    spread: Tensor


def certainty(
    outputs: Sequence[Tensor], labels: Sequence[Tensor], predictions: Sequence[Prediction]
) -> list[Tensor]:
    """Log-probabilities of classes, log softmax(beta mean / spread), `[n, C]` for every prediction.

    beta is what `vcl_radial.likelihoods.calibration` learns from the outputs.

    Args:
        outputs: outputs for learned points, predicted as if they had not been learned.
        labels: labels of these points.
        predictions: predictions to calibrate.
    """
    sharpness = Sharpness()
    for task_outputs, y in zip(outputs, labels, strict=True):
        sharpness.observe(task_outputs, y)
    beta = sharpness.beta
    return [(beta * p.mean / p.spread[:, None]).log_softmax(1) for p in predictions]


def nll_and_ece(log_probs: Sequence[Tensor], tasks: Sequence[Points]) -> tuple[float, float]:
    """Mean over tasks of the NLL (nats) and the calibration error (per cent)."""
    pairs = [(p, points.y) for p, points in zip(log_probs, tasks, strict=True)]
    nll = sum(metrics.nll(p, y) for p, y in pairs)
    ece = sum(metrics.expected_calibration_error(p, y) for p, y in pairs)
    return nll / len(pairs), ece / len(pairs)
