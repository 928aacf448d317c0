"""Scores of a linear model's predictions, by the kind of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from torch import Tensor

from vcl_radial import metrics
from vcl_radial.data.fundus.table import REFERABLE_FROM
from vcl_radial.likelihoods.calibration import Sharpness
from vcl_radial.metrics.referral import auc


class Score(NamedTuple):
    """The score of a stream.

    Attributes:
        function: function of outputs `[n, C]` and targets `[n]`.
        heading: heading of a table's column, with the unit.
        sign: 1 if higher scores are better, otherwise -1.
        decimals: decimals in a table.
    """

    function: Callable[[Tensor, Tensor], float]
    heading: str
    sign: int = 1
    decimals: int = 1


def _auc(outputs: Tensor, y: Tensor) -> float:
    # The outputs approximate the levels' probabilities.
    return float(auc((y >= REFERABLE_FROM).numpy(), outputs[:, REFERABLE_FROM:].sum(1).numpy()))


def _rmse(outputs: Tensor, y: Tensor) -> float:
    return float((outputs[:, 0] - y).square().mean().sqrt())


SCORES: Mapping[str, Score] = {
    "accuracy": Score(metrics.accuracy, "accuracy (%)"),
    "auc": Score(_auc, "AUC (%)"),
    "rmse": Score(_rmse, "RMSE (standard deviations)", sign=-1, decimals=3),
}


def nll_and_ece(
    learned: Iterable[tuple[Tensor, Tensor]], tests: Iterable[tuple[Tensor, Tensor]]
) -> tuple[float, float]:
    """Mean over tasks of the NLL (nats) and the calibration error (per cent) of classes.

    Class probabilities are softmax(beta m / s) of outputs over their spread, m / s, with the beta
    that `vcl_radial.likelihoods.calibration` learns.

    Args:
        learned: for every task, outputs over their spread at learned points `[n, C]`, predicted as
            if these points had not been learned, and their labels `[n]`.
        tests: the same at test points.
    """
    sharpness = Sharpness()
    for outputs, y in learned:
        sharpness.observe(outputs, y)
    log_probs = [((sharpness.beta * outputs).log_softmax(1), y) for outputs, y in tests]
    scores = [(metrics.nll(p, y), metrics.expected_calibration_error(p, y)) for p, y in log_probs]
    nll, ece = np.mean(scores, axis=0).tolist()
    return nll, ece
