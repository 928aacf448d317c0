"""Verdicts on published claims, with the same meaning on every page."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

from vcl_radial.metrics.estimates import estimate_over_splits, welch
from vcl_radial.metrics.seeds import holm, sign_flip_test

Correction: TypeAlias = Callable[[Hashable, float], float]
"""Maps a test and its p-value to the corrected p-value."""

LEVEL = 0.05
"""Level of all tests, after the correction for their number."""

POINTS_OF_ACCURACY = 0.5
"""Margin of equivalence of accuracies, in points."""

NATS = 0.05
"""Margin of equivalence of log-likelihoods: the gain of a calibrated Gaussian if its RMSE falls by
5 %, which is the margin of an RMSE."""


class Verdict(StrEnum):
    """The verdict on a published claim by our numbers."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NO_EVIDENCE = "no evidence either way"
    NOT_COMPARABLE = "not comparable"


def verdict_of_statement(holds: bool) -> Verdict:
    """Verdict on a statement about numbers without a spread: a closed form, a count, a density."""
    return Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED


def verdict_of_sign(difference: float, p: float) -> Verdict:
    """Verdict on a published difference above 0, by our difference's sign and p-value.

    Args:
        difference: our mean difference.
        p: two-sided p-value; nan where there is no test.

    Returns:
        Reproduced if p < 0.05 and the mean is above 0, not reproduced if p < 0.05 and it is below,
        otherwise no evidence.
    """
    # An unknown p (nan) is not below the level.
    if not p < LEVEL:
        return Verdict.NO_EVIDENCE
    return verdict_of_statement(difference > 0)


def verdict_of_difference(differences: Sequence[float]) -> Verdict:
    """Verdict on a published difference above 0, by the exact sign-flip test of our pairs.

    Args:
        differences: one difference per seed. Fewer than six cannot have p < 0.05.
    """
    return verdict_of_sign(sum(differences), sign_flip_test(differences))


def verdicts_of_family(differences: Sequence[Sequence[float]]) -> list[Verdict]:
    """Verdicts on published differences above 0, with Holm's correction for their number.

    Args:
        differences: our differences for each claim, one per seed.
    """
    p = holm([sign_flip_test(values) for values in differences])
    return [verdict_of_sign(sum(d), corrected) for d, corrected in zip(differences, p, strict=True)]


def side(difference: float, p: float, undecided: str = Verdict.NO_EVIDENCE) -> str:
    """Whether a test places the first of two above or below the second, or is undecided."""
    if not p < LEVEL:
        return undecided
    return "above" if difference > 0 else "below"


def side_of_interval(
    interval: tuple[float, float], narrow: tuple[float, float], margin: float
) -> str:
    """Where an exploratory difference lies: above, below, within a margin of 0, or undecided.

    Args:
        interval: 95 % interval of the difference; nan where there is none.
        narrow: its 90 % interval, which lies within the margin where two one-sided tests say so.
        margin: the smallest difference that counts.
    """
    if -margin < narrow[0] and narrow[1] < margin:
        return "within"
    return "above" if interval[0] > 0 else "below" if interval[1] < 0 else "undecided"


def verdict_of_figure(
    values: Sequence[float],
    published: float,
    margin: float,
    *,
    rounding: float = 0.0,
    overlap: float = 0.0,
    deviation: float = math.nan,
    count: int = 0,
    correct: Correction = lambda test, p: p,
) -> Verdict:
    """Verdict on a published figure, by equivalence: a wide interval reproduces nothing.

    Args:
        values: one value for each seed or split.
        published: the published figure.
        margin: the smallest distance from the figure that counts, above 0.
        rounding: half a unit of the figure's last printed digit.
        overlap: test rows over training rows, for random splits that share rows.
        deviation: the published standard deviation, for Welch's test.
        count: the number of published values, for Welch's test.
        correct: the correction of p-values for the family of tests.

    Returns:
        Reproduced if two one-sided tests show that our mean is within the margin of the figure;
        otherwise not reproduced if a test shows a difference beyond the figure's rounding;
        otherwise no evidence.
    """
    if math.isnan(deviation):
        estimate = estimate_over_splits([value - published for value in values], overlap)
    else:
        estimate = welch(values, published, deviation, count)
    test = ("figure", tuple(values), published)
    distant = estimate._replace(mean=max(0.0, abs(estimate.mean) - rounding))
    p_beyond = correct((*test, margin), estimate.p_beyond(margin))
    p_apart = correct(test, distant.p)
    if p_beyond < LEVEL:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if p_apart < LEVEL else Verdict.NO_EVIDENCE


def verdict_of_parts(verdicts: Iterable[Verdict | str]) -> Verdict:
    """Verdict on a claim of several parts: reproduced if all are, not reproduced if any is not."""
    parts = {Verdict(verdict) for verdict in verdicts}
    if Verdict.NOT_REPRODUCED in parts:
        return Verdict.NOT_REPRODUCED
    if parts == {Verdict.REPRODUCED}:
        return Verdict.REPRODUCED
    return Verdict.NOT_COMPARABLE if parts == {Verdict.NOT_COMPARABLE} else Verdict.NO_EVIDENCE
