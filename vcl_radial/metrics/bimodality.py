"""A score for the separation of numbers into two clusters around a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bimodality_gap_fraction(
    values: Sequence[float], cut: float, counts: Sequence[float] | None = None
) -> float:
    """The share of numbers in the middle third between the medians below and above a threshold.

    Args:
        values: the numbers, or the middles of a histogram's bars.
        cut: the threshold; a number equal to it counts as below.
        counts: the counts of the bars.

    Returns:
        From 0 (two clusters) to 1; 1 where one side has no number.
    """
    numbers = np.asarray(values, dtype=float)
    if counts is not None:
        numbers = np.repeat(numbers, np.asarray(counts, dtype=int))
    lower, upper = numbers[numbers <= cut], numbers[numbers > cut]
    if not (len(lower) and len(upper)):
        return 1.0
    low, high = np.median(lower), np.median(upper)
    third = (high - low) / 3
    return float(((numbers > low + third) & (numbers < high - third)).mean())
