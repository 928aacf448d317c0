"""Mean and standard error over the seeds of a method."""

from __future__ import annotations

import math
from collections.abc import Iterable


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
