"""What our numbers say of a published claim, in four words that mean the same on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

from vcl_radial.metrics.seeds import mean_and_standard_error, sign_flip_test

LEVEL = 0.05
"""Of tests, two-sided; intervals hold 95 %."""


class Verdict(StrEnum):
    """Of a published claim beside our numbers."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NO_EVIDENCE = "no evidence either way"
    NOT_COMPARABLE = "not comparable"


def of_statement(holds: bool) -> Verdict:
    """Of a statement that numbers without a spread decide: a closed form, a count, a density."""
    return Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED


def of_difference(differences: Sequence[float], level: float = LEVEL) -> Verdict:
    """Of a published difference above 0, by our paired ones and their exact sign-flip test.

    Args:
        differences: one for each seed. Fewer than six cannot have p < 0.05.
        level: of the test.

    Returns:
        Reproduced if p < level and the mean is above 0, not reproduced if p < level and it is
        below, otherwise no evidence.
    """
    p = sign_flip_test(differences)
    # A p that is not known is not below the level.
    if not p < level:
        return Verdict.NO_EVIDENCE
    return of_statement(sum(differences) > 0)


def side(difference: float, p: float, undecided: str = Verdict.NO_EVIDENCE) -> str:
    """Where the first of two stands by the p of a test: above, below, or undecided."""
    if not p < LEVEL:
        return undecided
    return "above" if difference > 0 else "below"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's 95 % interval of the mean, mean ± t_{n-1} se; without limits for one value."""
    from scipy import stats

    mean, error = mean_and_standard_error(values)
    if math.isnan(error):
        return -math.inf, math.inf
    half = float(stats.t.ppf(1 - LEVEL / 2, len(values) - 1)) * error
    return mean - half, mean + half


def of_figure(values: Sequence[float], published: float, rounding: float = 0.0) -> Verdict:
    """Of a published figure, by the 95 % interval of our mean.

    Args:
        values: one for each seed.
        published: the figure.
        rounding: of its print: half a unit of its last digit.

    Returns:
        Not reproduced if the figure lies outside the interval, otherwise reproduced. No evidence
        with fewer than two values, and where the figure is inside because the interval is wide:
        where half of it is more than half of the figure.
    """
    if len(values) < 2:
        return Verdict.NO_EVIDENCE
    low, high = interval(values)
    inside = low - rounding <= published <= high + rounding
    if inside and high - low > abs(published):
        return Verdict.NO_EVIDENCE
    return of_statement(inside)


def together(verdicts: Iterable[Verdict | str]) -> Verdict:
    """Of a claim of several parts: reproduced if all are, not reproduced if any is not."""
    parts = {Verdict(verdict) for verdict in verdicts}
    if Verdict.NOT_REPRODUCED in parts:
        return Verdict.NOT_REPRODUCED
    if parts == {Verdict.REPRODUCED}:
        return Verdict.REPRODUCED
    return Verdict.NOT_COMPARABLE if parts == {Verdict.NOT_COMPARABLE} else Verdict.NO_EVIDENCE
