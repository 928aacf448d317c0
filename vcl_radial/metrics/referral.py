"""Scores of a screening model that refers what it is least certain about to an expert.

Two classes: 1 is to be seen by an expert, 0 is not. Photographs are rows; those of one patient
belong together wherever rows are resampled. The scores are a few lines each, as the bootstrap asks
for them a thousand times: scikit-learn's, with which tests compare them, take 6 to 90 times as
long. Farquhar, Osborne and Gal (2020), section 4.1;
Leibig et al., "Leveraging uncertainty information from deep neural networks for disease
detection" (Scientific Reports 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Score = Callable[[Whole, Floats], float]
"""Of classes `[N]` and probabilities `[N]` of class 1."""


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy of each distribution: -sum_c p(c) log p(c).

    Args:
        log_probs: natural logarithms of probabilities, `[..., C]`.

    Returns:
        Nats, `[...]`, double precision.
    """
    double = log_probs.double()
    of_each: Tensor = torch.special.entr(double.exp()).sum(-1)
    return of_each


def mutual_information(log_draws: Tensor) -> Tensor:
    """What the class would tell about the weights: H[ mean_s p_s ] - mean_s H[ p_s ].

    Of a single draw it is 0, of draws that all agree too.

    Args:
        log_draws: natural logarithms of the probabilities under S draws, `[S, N, C]`.

    Returns:
        Nats, `[N]`, double precision, from 0 up to log min(S, C).
    """
    double = log_draws.double()
    mean = double.logsumexp(0) - math.log(len(double))
    # Rounding may leave a little below 0.
    return (entropy(mean) - entropy(double).mean(0)).clamp(min=0)


def kept(uncertainty: Floats, referred: float) -> Whole:
    """The rows that are not referred, in their order.

    Of N rows round(referred * N) are referred, those with the largest uncertainty; among equally
    uncertain ones the last rows first.

    Args:
        uncertainty: of each row, `[N]`; any scale.
        referred: the share, from 0 to below 1.

    Raises:
        ValueError: the share is impossible, or an uncertainty is not a number.
    """
    if not 0 <= referred < 1:
        raise ValueError(f"referred must be from 0 to below 1, got {referred}")
    if np.isnan(uncertainty).any():
        raise ValueError("an uncertainty is not a number")
    count = len(uncertainty) - round(referred * len(uncertainty))
    return np.sort(np.argsort(uncertainty, kind="stable")[:count]).astype(np.int64)


def auc(classes: Whole, scores: Floats) -> float:
    """Area under the ROC curve: P(score of a 1 > score of a 0), ties counted half.

    It serves detection too: `classes` then says which rows are out of distribution or have an
    artefact, and `scores` is their uncertainty.

    Args:
        classes: 0 or 1, `[N]`.
        scores: larger for class 1, `[N]`; any scale.

    Returns:
        Per cent; not a number where one of the classes is missing.
    """
    _check(classes, scores)
    zeros, ones = np.sort(scores[classes == 0]), scores[classes == 1]
    if not len(zeros) or not len(ones):
        return math.nan
    # Of each 1: the 0s below it, and those not above it. Bootstraps ask for it a thousand times.
    below, not_above = np.searchsorted(zeros, ones), np.searchsorted(zeros, ones, "right")
    return 50.0 * float(np.mean(below + not_above)) / len(zeros)


def accuracy_at_half(classes: Whole, probabilities: Floats) -> float:
    """Share of rows on the right side of probability 1/2 (class 0 where equal), in per cent."""
    _check(classes, probabilities)
    return 100.0 * float(np.mean((probabilities > 0.5) == classes))


def balanced_accuracy(classes: Whole, probabilities: Floats) -> float:
    """Mean of sensitivity and specificity at probability 1/2, which counts as class 0.

    Returns:
        Per cent; not a number where one of the classes is missing.
    """
    _check(classes, probabilities)
    right, ones = (probabilities > 0.5) == classes, classes == 1
    if ones.all() or not ones.any():
        return math.nan
    return 50.0 * float(right[ones].mean() + right[~ones].mean())


def brier(classes: Whole, probabilities: Floats) -> float:
    """Mean of (p - y)^2, from 0 to 1: half of Brier's (1950) sum over both classes."""
    _check(classes, probabilities)
    return float(np.mean(np.square(probabilities - classes)))


@dataclass(frozen=True)
class CalibrationCurve:
    """How often what was said comes true, bin by bin of the probability of class 1.

    Attributes:
        edges: of the bins, `[bins + 1]`; bin k holds the rows with p in (edge k, edge k + 1], the
            first one those with p = 0 too.
        count: rows in each bin, `[bins]`.
        predicted: their mean probability, `[bins]`; not a number in an empty bin.
        observed: their share of class 1, `[bins]`; likewise.
    """

    edges: Floats
    count: Whole
    predicted: Floats
    observed: Floats

    @property
    def error(self) -> float:
        """sum_k count_k / N |observed_k - predicted_k|, in per cent: class 1's calibration error.

        `expected_calibration_error` is another number: it looks at the likelier class only.
        """
        some = self.count > 0
        gap = np.abs(self.observed[some] - self.predicted[some])
        return 100.0 * float(np.sum(self.count[some] * gap) / self.count.sum())


def calibration_curve(classes: Whole, probabilities: Floats, bins: int = 10) -> CalibrationCurve:
    """The calibration curve in bins of equal width; with 10 that of Farquhar et al., Fig. 3.

    Args:
        classes: 0 or 1, `[N]`.
        probabilities: of class 1, `[N]`.
        bins: at least 1.

    Raises:
        ValueError: the shapes do not belong together, there are no rows, or `bins` < 1.
    """
    _check(classes, probabilities)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    edges = np.arange(bins + 1) / bins
    of_row = np.searchsorted(edges[1:-1], probabilities)
    count = np.bincount(of_row, minlength=bins)
    with np.errstate(invalid="ignore"):
        predicted = np.bincount(of_row, probabilities, bins) / count
        observed = np.bincount(of_row, classes, bins) / count
    return CalibrationCurve(edges, count, predicted, observed)


@dataclass(frozen=True)
class ReferralCurve:
    """A score of what is kept, for several shares that are referred.

    Attributes:
        referred: the shares, `[K]`.
        value: the score at each, `[K]`.
        standard_error: over resamples of the patients, `[K]`; not a number without them.
        lower: 5 % of the resamples lie below, `[K]`.
        upper: 5 % of the resamples lie above, `[K]`.
    """

    referred: Floats
    value: Floats
    standard_error: Floats
    lower: Floats
    upper: Floats


def referral_curve(
    classes: Whole,
    probabilities: Floats,
    uncertainty: Floats,
    patients: NDArray[np.str_],
    *,
    score: Score = auc,
    referred: Sequence[float] = (0.0, 0.1, 0.2, 0.3),
    resamples: int = 100,
    seed: int = 0,
) -> ReferralCurve:
    """Score what is kept when the least certain rows are referred.

    The standard error is bootstrapped: patients are drawn with replacement, as many as there are,
    each with all photographs, and every resample is referred and scored anew. A resample in which
    the score is not defined, such as an AUC of one class, is left out.

    Args:
        classes: 0 or 1, `[N]`.
        probabilities: of class 1, `[N]`.
        uncertainty: `[N]`; the largest are referred first.
        patients: who is on each photograph, `[N]`.
        score: of classes and probabilities; `auc` by default.
        referred: the shares, from 0 to below 1.
        resamples: 0 for none.
        seed: of the resamples: two methods with one seed see the same patients.

    Raises:
        ValueError: the shapes do not belong together, or a share is impossible.
    """
    _check(classes, probabilities)
    if not len(classes) == len(uncertainty) == len(patients):
        raise ValueError(
            f"{len(classes)} classes, {len(uncertainty)} uncertainties and {len(patients)} "
            "patients do not belong together"
        )

    def scores(rows: Whole) -> list[float]:
        found = []
        for share in referred:
            left = rows[kept(uncertainty[rows], share)]
            found.append(score(classes[left], probabilities[left]) if len(left) else math.nan)
        return found

    value = np.array(scores(np.arange(len(classes))))
    draws = np.array(
        [scores(rows) for rows in resampled(patients, resamples, seed)], np.float64
    ).reshape(resamples, len(referred))
    return ReferralCurve(
        referred=np.array(referred, np.float64),
        value=value,
        standard_error=np.array([_over(d, lambda x: float(x.std(ddof=1))) for d in draws.T]),
        lower=np.array([_over(d, lambda x: float(np.quantile(x, 0.05))) for d in draws.T]),
        upper=np.array([_over(d, lambda x: float(np.quantile(x, 0.95))) for d in draws.T]),
    )


def resampled(patients: NDArray[np.str_], resamples: int, seed: int) -> list[Whole]:
    """Rows of as many patients as there are, drawn with replacement; of each all of them.

    The draws depend on the seed and the number of patients alone.
    """
    names, of_row = np.unique(patients, return_inverse=True)
    rng = np.random.default_rng(seed)
    rows = np.arange(len(patients), dtype=np.int64)
    found = []
    for _ in range(resamples):
        times = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        found.append(np.repeat(rows, times[of_row]))
    return found


def _over(draws: Floats, statistic: Callable[[Floats], float]) -> float:
    """A statistic of the draws that are numbers; not a number where fewer than two are."""
    numbers = draws[~np.isnan(draws)]
    return statistic(numbers) if len(numbers) > 1 else math.nan


def _check(classes: Whole, scores: Floats) -> None:
    if classes.ndim != 1 or scores.shape != classes.shape or not len(classes):
        raise ValueError(
            "classes and scores must both be [N] with N >= 1, "
            f"got {list(classes.shape)} and {list(scores.shape)}"
        )
    if classes.min() < 0 or classes.max() > 1:
        raise ValueError("classes must be 0 or 1")
