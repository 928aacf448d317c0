"""Whether numbers lie in two heaps beside a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bimodality_gap_fraction(
    values: Sequence[float], cut: float, counts: Sequence[float] | None = None
) -> float:
    """The share of numbers in the middle third between the medians on both sides of a threshold.

    Args:
        values: the numbers, or the middles of a histogram's bars.
        cut: the threshold; a number at it is below.
        counts: of the bars.

    Returns:
        From 0, two heaps, to 1; 1 where one side has no number.
    """
    numbers = np.asarray(values, dtype=float)
    if counts is not None:
        numbers = np.repeat(numbers, np.asarray(counts, dtype=int))
    below, above = numbers[numbers <= cut], numbers[numbers > cut]
    if not (len(below) and len(above)):
        return 1.0
    low, high = np.median(below), np.median(above)
    third = (high - low) / 3
    return float(((numbers > low + third) & (numbers < high - third)).mean())
