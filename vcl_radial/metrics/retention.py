"""Scores of a screening model that keeps its most certain cases and refers the others.

A retained share is a set of weights: 1 for a retained row, 0 for a referred row. A resample of the
patients is a set of weights too: the number of times that a patient was drawn. All scores of
`vcl_radial.metrics.referral` take weights, so the same functions score every share and resample.

Referral: Leibig et al., "Leveraging uncertainty information from deep neural networks for disease
detection" (Scientific Reports 2017); Farquhar, Osborne and Gal (2020), Section 4.1. Areas under the
retention curves and detection of other data: Band et al., "Benchmarking Bayesian Deep Learning on
Diabetic Retinopathy Detection Tasks" (RETINA; NeurIPS Datasets and Benchmarks 2021), Section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vcl_radial.metrics.declared import declare
from vcl_radial.metrics.referral import (
    Floats,
    Whole,
    accuracy_at_half,
    auc,
    average_precision,
    binary_nll,
)

for _classes in ("", "balanced_"):
    declare(f"{_classes}accuracy_area", "area: accuracy", 1, "higher")
    declare(f"{_classes}nll_area", "area: NLL (nats)", 3, "lower")
    declare(f"{_classes}auc_area", "area: AUC", 1, "higher")
    declare(f"{_classes}auprc_area", "area: AUPRC", 1, "higher")
declare("ood_auc", "AUC", 1, "higher", "of uncertainty, which tells other data from the test part")
declare("ood_auprc", "AUPRC", 1, "higher", "of uncertainty, as above")
declare("finds_artefacts", "artefacts, AUC", 1, "higher", "of uncertainty, which finds artefacts")

SHARES: Final = (np.arange(20) + 0.5) / 20
"""Retained shares at which a retention curve is integrated: the middles of twenty equal parts."""


def ranks(uncertainty: Floats) -> Whole:
    """The rank of each row's uncertainty among the distinct values, from 0, `[N]`.

    Raises:
        ValueError: an uncertainty is not a number.
    """
    if np.isnan(uncertainty).any():
        raise ValueError("an uncertainty is not a number")
    return np.unique(uncertainty, return_inverse=True)[1].astype(np.int64)


def retained(rank: Whole, shares: Floats, weights: Floats | None = None) -> Floats:
    """The weight of every row in the most certain share r of all weight.

        v_i(r) = w_i clip( ( r W - W(rank < rank_i) ) / W(rank = rank_i), 0, 1 )

    Equally uncertain rows are retained in equal parts, which is the average over all their orders.
    So no score depends on the order of the rows.

    Args:
        rank: ranks of the rows' uncertainties from `ranks`, `[N]`.
        shares: r, above 0 and at most 1, `[K]`.
        weights: w, not negative, `[N]`; by default all count alike.

    Returns:
        `[K, N]`; the weights of a share have the sum r W.

    Raises:
        ValueError: a share is impossible.
    """
    if not ((shares > 0) & (shares <= 1)).all():
        raise ValueError(f"shares must be from above 0 to 1, got {shares.tolist()}")
    weight = np.ones(len(rank)) if weights is None else weights
    weight_of_rank = np.bincount(rank, weight)
    before = (weight_of_rank.cumsum() - weight_of_rank)[rank]
    tied_weight = np.where(weight_of_rank > 0, weight_of_rank, 1.0)[rank]
    part: Floats = (shares[:, None] * weight_of_rank.sum() - before) / tied_weight
    retained_weights: Floats = np.clip(part, 0.0, 1.0, out=part) * weight
    return retained_weights


def class_balanced(classes: Whole, weights: Floats | None = None) -> Floats:
    """Weights `[N]` with which both classes count alike: w_i / (2 W_y), with the sum 1."""
    weight = np.ones(len(classes)) if weights is None else weights
    class_weight = np.bincount(classes, weight, minlength=2)
    balanced: Floats = weight / (2 * np.where(class_weight > 0, class_weight, 1.0))[classes]
    return balanced


def retention_areas(
    classes: Whole,
    probabilities: Floats,
    log_odds: Floats,
    rank: Whole,
    weights: Floats | None = None,
) -> Mapping[str, float]:
    """Areas under the retention curves of accuracy, NLL, AUROC and AUPRC.

        A = ∫_0^1 s(r) dr ≈ 1/K Σ_k s( (k - 1/2) / K ),    K = 20

    s(r) is the score of the most certain share r (`retained`). The mean leaves out shares where the
    score is not defined: the AUROC of one class and the AUPRC without class 1. RETINA's code gives
    such a share the best or the worst score. If a score is equal at every share, its area equals
    the score. The weights of `class_balanced` give the balanced form; in RETINA's code, balanced
    means in-domain and shifted data in equal parts.

    Args:
        classes: 0 or 1, `[N]`.
        probabilities: probabilities of class 1, `[N]`; ascending order takes less time.
        log_odds: log odds of class 1, `[N]`, in nats.
        rank: ranks of the rows' uncertainties from `ranks`, `[N]`.
        weights: weights of the rows, not negative, `[N]`; by default all count alike.

    Returns:
        `accuracy`, `auc` and `auprc` in per cent, `nll` in nats; not a number where no share has a
        score.
    """
    retained_weights = retained(rank, SHARES, weights)
    curves = {
        "accuracy": accuracy_at_half(classes, probabilities, retained_weights),
        "nll": binary_nll(classes, log_odds, retained_weights),
        "auc": auc(classes, probabilities, retained_weights),
        "auprc": average_precision(classes, probabilities, retained_weights),
    }
    return {name: _over(curve, np.mean, 1) for name, curve in curves.items()}


@dataclass(frozen=True)
class Estimate:
    """M scores with their spread over resamples of the patients.

    Attributes:
        value: scores of all rows, `[M]`.
        standard_error: standard deviation over the resamples, `[M]`; nan without resamples.
        lower: 5 % of the resamples lie below, `[M]`.
        upper: 5 % of the resamples lie above, `[M]`.
    """

    value: Floats
    standard_error: Floats
    lower: Floats
    upper: Floats


def over_patients(score: Callable[[Floats], Floats], resamples: Floats) -> Estimate:
    """Scores of all rows, and of every resample of the patients.

    The spread of a score leaves out resamples where the score is not defined, such as an AUC of
    one class.

    Args:
        score: maps weights `[N]` to M scores.
        resamples: resamples from `resampled`, `[B, N]`.
    """
    value = score(np.ones(resamples.shape[1]))
    draws = np.array([score(weights) for weights in resamples]).reshape(-1, len(value))

    def spread(statistic: Callable[[Floats], np.float64]) -> Floats:
        return np.array([_over(draw, statistic, 2) for draw in draws.T])

    return Estimate(
        value=value,
        standard_error=spread(lambda draw: draw.std(ddof=1)),
        lower=spread(lambda draw: np.quantile(draw, 0.05)),
        upper=spread(lambda draw: np.quantile(draw, 0.95)),
    )


def resampled(patients: NDArray[np.str_], resamples: int, seed: int) -> Floats:
    """The number of times that each row is drawn in a bootstrap over patients.

    A resample draws as many patients as there are, with replacement, and takes all photographs of a
    patient. The draws depend on the seed and the number of patients alone: two methods have the
    same resamples.

    Returns:
        `[B, N]` for B resamples.
    """
    names, patient_of_row = np.unique(patients, return_inverse=True)
    rng = np.random.default_rng(seed)
    sampled_patients = rng.integers(len(names), size=(resamples, len(names)))
    times = [np.bincount(draw, minlength=len(names))[patient_of_row] for draw in sampled_patients]
    return np.array(times, np.float64).reshape(resamples, len(patients))


def _over(values: Floats, statistic: Callable[[Floats], np.float64], least: int) -> float:
    """A statistic of the values that are not nan; nan where there are fewer than `least`."""
    numbers = values[~np.isnan(values)]
    return float(statistic(numbers)) if len(numbers) >= least else math.nan
