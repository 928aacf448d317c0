"""Statistics over seeds: mean, standard error, and tests of whether two methods differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

FEWEST_SEEDS, MOST_SEEDS = 6, 40
"""Seeds of a paired test: with five, p is at least 2 / 2^5 = 0.0625, so none is printed."""


def mean_and_standard_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean of independent runs and the standard error of that mean.

        mean = 1/n Σ x_i,        se = sqrt( Σ (x_i - mean)² / (n - 1) ) / sqrt(n)

    Args:
        values: One value per seed.

    Returns:
        `(mean, se)` in the unit of the values. One seed has no spread: `se` is nan. Without any
        value both are nan.
    """
    x = [float(value) for value in values]
    n = len(x)
    if n == 0:
        return math.nan, math.nan
    mean = math.fsum(x) / n
    if n == 1:
        return mean, math.nan
    variance = math.fsum((value - mean) ** 2 for value in x) / (n - 1)
    return mean, math.sqrt(variance / n)


def sign_flip_test(differences: Sequence[float]) -> float:
    """Exact two-sided p-value that paired differences come from methods that do not differ.

        p = share of the 2^n sign patterns with  |Σ ±d_i| >= |Σ d_i|

    The patterns are counted, not listed: a pattern combines a pattern of the first half of the
    differences with a pattern of the second half, and the sums of the second half are sorted once.
    `scipy.stats` has this test too (a special case of `permutation_test`), but lists all patterns:
    with 20 seeds it takes seconds, and a table has hundreds of such tests.

    Args:
        differences: One difference per seed, n of them.

    Returns:
        The p-value. It is never below 2 / 2^n: five seeds cannot give less than 0.0625. Without any
        difference, with one that is not finite, and above 40 seeds, nan.
    """
    d = np.asarray(differences, dtype=float)
    n = len(d)
    if not 0 < n <= MOST_SEEDS or not np.isfinite(d).all():
        return math.nan
    # Patterns that tie with the observed one up to rounding are at least as extreme.
    threshold = abs(d.sum()) - 1e-9 * np.abs(d).sum()
    if threshold <= 0.0:
        return 1.0
    first, second = _signed_sums(d[: n // 2]), np.sort(_signed_sums(d[n // 2 :]))
    below = np.searchsorted(second, threshold - first, side="left")
    # Patterns with all signs changed have the opposite sums: one tail counts for both.
    return 2.0 * float((len(second) - below).sum()) / 2.0**n


def sign_test(above: int, pairs: int) -> float:
    """Exact two-sided p-value for the hypothesis that the first of a pair is above with p = 1/2.

        p = min(1, 2 P(X <= min(above, pairs - above))),    X ~ Binomial(pairs, 1/2)

    Use it where the sign-flip test does not apply: for more pairs, or if a missing score counts as
    the lower score of a pair.

    Args:
        above: number of pairs in which the first is above.
        pairs: number of all pairs, without ties.

    Returns:
        The p-value; nan without a pair.

    Raises:
        ValueError: `above` is larger than `pairs`.
    """
    if not 0 <= above <= max(pairs, 0):
        raise ValueError(f"{above} of {pairs} pairs cannot be above")
    if pairs < 1:
        return math.nan
    tail = sum(math.comb(pairs, k) for k in range(min(above, pairs - above) + 1))
    return min(1.0, tail / (1 << (pairs - 1)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's step-down rule (Holm 1979).

        p'_(i) = max over j <= i of  min(1, (m - j + 1) p_(j)),    p_(1) <= ... <= p_(m)

    Args:
        p_values: m p-values in any order; nan stays nan, and counts.

    Returns:
        The corrected p-values in the same order: if all below alpha are rejected, the chance of one
        false rejection or more is at most alpha.
    """
    corrected = [math.nan] * len(p_values)
    largest = 0.0
    valid = [i for i, p in enumerate(p_values) if not math.isnan(p)]
    order = sorted(valid, key=lambda i: p_values[i])
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def _signed_sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ ±v_i for all 2^n sign patterns."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums
