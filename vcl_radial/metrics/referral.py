"""Scores of a screening model: its certainty about a photograph, and how often it is right.

There are two classes: an expert has to see class 1, but not class 0. Rows are photographs. Every
score takes one or many sets of row weights at once: retained photographs and resamples of the
patients are weights (`vcl_radial.metrics.retention`). The scores of scikit-learn, the reference in
the tests, take one set at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vcl_radial.metrics.declared import declare, metric

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Score = Callable[[Whole, Floats, Floats], Floats]
"""Maps classes `[N]`, probabilities `[N]` of class 1 and weights `[..., N]` to scores `[...]`."""


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy of each distribution: -sum_c p(c) log p(c).

    Args:
        log_probs: natural logarithms of probabilities, `[..., C]`.

    Returns:
        Nats, `[...]`, double precision.
    """
    import torch  # reports import this package and need no PyTorch

    double = log_probs.double()
    entropies: Tensor = torch.special.entr(double.exp()).sum(-1)
    return entropies


def mutual_information(log_draws: Tensor) -> Tensor:
    """The information of the class about the weights: H[ mean_s p_s ] - mean_s H[ p_s ].

    It is 0 for a single draw, and for draws that agree.

    Args:
        log_draws: natural logarithms of the probabilities under S draws, `[S, N, C]`.

    Returns:
        Nats, `[N]`, double precision, from 0 up to log min(S, C).
    """
    double = log_draws.double()
    mean = double.logsumexp(0) - math.log(len(double))
    # Rounding may give a number just below 0.
    return (entropy(mean) - entropy(double).mean(0)).clamp(min=0)


@metric("AUC", 1, "higher", of="table")
def auc(classes: Whole, scores: Floats, weights: Floats | None = None) -> Floats:
    """Area under the ROC curve: P(score of a 1 > score of a 0), ties counted half.

        100 Σ_{i: y=1} Σ_{j: y=0} w_i w_j ( 1[s_i > s_j] + 1[s_i = s_j] / 2 ) / ( W_1 W_0 )

    It also scores detection: `classes` then marks the rows that are out of distribution or have an
    artefact, and `scores` is their uncertainty.

    Args:
        classes: 0 or 1, `[N]`.
        scores: larger for class 1, `[N]`; any scale.
        weights: weights of the rows, not negative, `[..., N]`; by default all count alike.

    Returns:
        Per cent, `[...]`; not a number where one of the classes has no weight.
    """
    ones, zeros = _sums_by_score(classes, scores, weights)
    weight_below = zeros.cumsum(-1) - zeros / 2
    correct = np.einsum("...n,...n->...", ones, weight_below)
    return _ratio(100 * correct, ones.sum(-1) * zeros.sum(-1))


@metric("AUPRC", 1, "higher", of="table", name="auprc")
def average_precision(classes: Whole, scores: Floats, weights: Floats | None = None) -> Floats:
    """Area under the precision-recall curve of class 1, as a sum over thresholds t.

        100 Σ_t ( R_t - R_{t-1} ) P_t,    P_t = W_1(s >= t) / W(s >= t),   R_t = W_1(s >= t) / W_1

    The chance level is the share of class 1. There is no interpolation: trapezoids between the
    thresholds are too large (Davis and Goadrich 2006).

    Args:
        classes: 0 or 1, `[N]`.
        scores: larger for class 1, `[N]`; any scale.
        weights: weights of the rows, not negative, `[..., N]`; by default all count alike.

    Returns:
        Per cent, `[...]`; not a number where class 1 has no weight.
    """
    ones, zeros = _sums_by_score(classes, scores, weights)
    ones, zeros = ones[..., ::-1], zeros[..., ::-1]
    hits, false_alarms = ones.cumsum(-1), zeros.cumsum(-1)
    # Above the highest score with a weight the precision is multiplied by 0.
    precision = hits / np.maximum(hits + false_alarms, np.finfo(np.float64).tiny)
    return _ratio(100 * np.einsum("...n,...n->...", ones, precision), hits[..., -1])


def accuracy_at_half(
    classes: Whole, probabilities: Floats, weights: Floats | None = None
) -> Floats:
    """Share of rows on the right side of probability 1/2 (class 0 where equal).

    Returns:
        Per cent, `[...]`, for weights `[..., N]`.
    """
    _check(classes, probabilities)
    return 100 * _mean((probabilities > 0.5) == classes, weights)


@metric("balanced accuracy", 1, "higher", of="table")
def balanced_accuracy(
    classes: Whole, probabilities: Floats, weights: Floats | None = None
) -> Floats:
    """Mean of sensitivity and specificity at probability 1/2, which counts as class 0.

    Returns:
        Per cent, `[...]`, for weights `[..., N]`; nan where a class has no weight.
    """
    _check(classes, probabilities)
    correct = (probabilities > 0.5) == classes
    weight = np.ones(len(classes)) if weights is None else weights
    return 50 * (_mean(correct, weight * (classes == 1)) + _mean(correct, weight * (classes == 0)))


def binary_nll(classes: Whole, log_odds: Floats, weights: Floats | None = None) -> Floats:
    """Mean negative log-likelihood: -log p(y) = log(1 + e^{-z}) for y = 1, log(1 + e^z) for y = 0.

    Args:
        classes: 0 or 1, `[N]`.
        log_odds: z = log p(1) - log p(0), `[N]`, in nats.
        weights: weights of the rows, not negative, `[..., N]`; by default all count alike.

    Returns:
        Nats per row, `[...]`.
    """
    _check(classes, log_odds)
    return _mean(np.logaddexp(0.0, (1 - 2 * classes) * log_odds), weights)


@metric("Brier", 3, "lower", of="table")
def brier(classes: Whole, probabilities: Floats, weights: Floats | None = None) -> Floats:
    """Mean of (p - y)^2, from 0 to 1: half of Brier's (1950) sum over both classes; `[...]`."""
    _check(classes, probabilities)
    return _mean(np.square(probabilities - classes), weights)


declare("calibration_error", "calibration error", 1, "lower", "that of class 1, in per cent")


@dataclass(frozen=True)
class CalibrationCurve:
    """Predicted and observed frequency of class 1 per bin of the predicted probability.

    Attributes:
        edges: edges of the bins, `[bins + 1]`; bin k holds the rows with p in (edge k, edge k + 1],
            and the first bin also holds p = 0.
        count: number of rows in each bin, `[bins]`.
        predicted: mean probability in each bin, `[bins]`; nan in an empty bin.
        observed: share of class 1 in each bin, `[bins]`; nan in an empty bin.
    """

    edges: Floats
    count: Whole
    predicted: Floats
    observed: Floats

    @property
    def error(self) -> float:
        """The calibration error of class 1: sum_k count_k / N |observed_k - predicted_k|, per cent.

        It differs from `expected_calibration_error`, which looks at the likelier class only.
        """
        weight = self.count > 0
        gap = np.abs(self.observed[weight] - self.predicted[weight])
        return 100.0 * float(np.sum(self.count[weight] * gap) / self.count.sum())


def calibration_curve(classes: Whole, probabilities: Floats, bins: int = 10) -> CalibrationCurve:
    """The calibration curve in bins of equal width; Farquhar et al., Fig. 3, has 10 bins.

    Args:
        classes: 0 or 1, `[N]`.
        probabilities: probabilities of class 1, `[N]`.
        bins: number of bins, at least 1.

    Raises:
        ValueError: the shapes do not belong together, there are no rows, or `bins` < 1.
    """
    _check(classes, probabilities)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    edges = np.arange(bins + 1) / bins
    bin_of_row = np.searchsorted(edges[1:-1], probabilities)
    count = np.bincount(bin_of_row, minlength=bins)
    with np.errstate(invalid="ignore"):
        predicted = np.bincount(bin_of_row, probabilities, bins) / count
        observed = np.bincount(bin_of_row, classes, bins) / count
    return CalibrationCurve(edges, count, predicted, observed)


def _sums_by_score(classes: Whole, scores: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The weights of class 1 and of class 0 at every score, in ascending order, `[..., S]`."""
    _check(classes, scores)
    weight = np.ones(len(classes)) if weights is None else weights
    if (np.diff(scores) < 0).any():
        order = np.argsort(scores, kind="stable")
        classes, scores, weight = classes[order], scores[order], weight[..., order]
    ones = weight * classes
    zeros = weight - ones
    first = np.flatnonzero(np.diff(scores, prepend=-np.inf) > 0)
    if len(first) == len(scores):
        return ones, zeros
    return np.add.reduceat(ones, first, axis=-1), np.add.reduceat(zeros, first, axis=-1)


def _mean(values: Floats | NDArray[np.bool_], weights: Floats | None) -> Floats:
    weight = np.ones(len(values)) if weights is None else weights
    return _ratio(weight @ values.astype(np.float64), weight.sum(-1))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        ratio: Floats = numerator / denominator
    return ratio


def _check(classes: Whole, scores: Floats) -> None:
    if classes.ndim != 1 or scores.shape != classes.shape or not len(classes):
        raise ValueError(
            "classes and scores must both be [N] with N >= 1, "
            f"got {list(classes.shape)} and {list(scores.shape)}"
        )
    if classes.min() < 0 or classes.max() > 1:
        raise ValueError("classes must be 0 or 1")
