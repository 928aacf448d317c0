"""A mean with its t distribution: tests of a difference from 0 and of equivalence.

    t = (mean - 0) / error,    t ~ Student's distribution with `degrees` of freedom

`estimate_over_splits` has the corrected resampled variance of Nadeau and Bengio ("Inference for the
Generalization Error", 2003), `welch` the test of Welch (1947) for two means with unequal variances.
Equivalence is shown by two one-sided tests (Schuirmann 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vcl_radial.metrics.seeds import mean_and_standard_error


class Estimate(NamedTuple):
    """An estimate of a difference.

    Attributes:
        mean: the mean, in the unit of the values.
        error: the standard error of the mean; nan for a single value.
        degrees: the degrees of freedom.
    """

    mean: float
    error: float
    degrees: float

    @property
    def p(self) -> float:
        """Two-sided p-value that the difference is 0; nan without a spread."""
        return 2 * self._upper_tail(abs(self.mean))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval that holds the true difference with this probability; nan for one value."""
        from scipy import stats

        half = float(stats.t.ppf((1 + level) / 2, self.degrees)) * self.error
        return self.mean - half, self.mean + half

    def p_beyond(self, margin: float) -> float:
        """The p-value that the difference is at least a margin, by two one-sided tests.

            p = max( P(t >= (mean + margin) / error),  P(t <= (mean - margin) / error) )

        It is below 0.05 exactly where the 90 % interval lies within the margin on both sides.

        Args:
            margin: the smallest difference that counts, above 0.
        """
        return max(self._upper_tail(margin + self.mean), self._upper_tail(margin - self.mean))

    def _upper_tail(self, distance: float) -> float:
        from scipy import stats

        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 0.5 if distance == 0.0 else float(distance < 0.0)
        return float(stats.t.sf(distance / self.error, self.degrees))


def estimate_over_splits(differences: Sequence[float], overlap: float = 0.0) -> Estimate:
    """The mean of differences over seeds, or over random splits that share rows.

        error² = (1/k + n_test / n_train) s²,    k - 1 degrees of freedom

    Without an overlap it is Student's paired t-test.

    Args:
        differences: k differences, one for each seed or split.
        overlap: test rows over training rows of a split; 0 for seeds.
    """
    mean, error = mean_and_standard_error(differences)
    return Estimate(mean, error * math.sqrt(1 + len(differences) * overlap), len(differences) - 1)


def welch(values: Sequence[float], mean: float, deviation: float, count: int) -> Estimate:
    """The mean of values minus a published mean with a standard deviation.

        error² = s²/n + deviation²/count,   degrees by Welch and Satterthwaite

    Args:
        values: n values, n at least 2.
        mean: the published mean.
        deviation: the published standard deviation.
        count: number of the published values, at least 2.
    """
    sample_mean, error = mean_and_standard_error(values)
    parts = error**2, deviation**2 / count
    spread = sum(parts)
    if not spread > 0:
        return Estimate(sample_mean - mean, math.sqrt(spread), len(values) + count - 2)
    degrees = spread**2 / (parts[0] ** 2 / (len(values) - 1) + parts[1] ** 2 / (count - 1))
    return Estimate(sample_mean - mean, math.sqrt(spread), degrees)
