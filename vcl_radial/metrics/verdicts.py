"""What our numbers say of a published claim, in four words that mean the same on every page."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias

from vcl_radial.metrics.estimates import of_splits, welch
from vcl_radial.metrics.seeds import holm, sign_flip_test

Correction: TypeAlias = Callable[[Hashable, float], float]
"""Takes a test and its p-value, and gives the corrected p-value."""

LEVEL = 0.05
"""Level of all tests, after the correction for their number."""

POINTS_OF_ACCURACY = 0.5
"""Margin of equivalence of accuracies, in points."""

NATS = 0.05
"""Margin of equivalence of log-likelihoods: what a calibrated Gaussian gains when its RMSE falls by
5 %, the margin of an RMSE."""


class Verdict(StrEnum):
    """Of a published claim beside our numbers."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NO_EVIDENCE = "no evidence either way"
    NOT_COMPARABLE = "not comparable"


def of_statement(holds: bool) -> Verdict:
    """Of a statement that numbers without a spread decide: a closed form, a count, a density."""
    return Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED


def of_sign(difference: float, p: float) -> Verdict:
    """Verdict on a published difference above 0, by the sign of ours and the p-value of its test.

    Args:
        difference: the mean of ours.
        p: two-sided; nan where there is no test.

    Returns:
        Reproduced if p < 0.05 and the mean is above 0, not reproduced if p < 0.05 and it is below,
        otherwise no evidence.
    """
    # A p that is not known is not below the level.
    if not p < LEVEL:
        return Verdict.NO_EVIDENCE
    return of_statement(difference > 0)


def of_difference(differences: Sequence[float]) -> Verdict:
    """Verdict on a published difference above 0, by the exact sign-flip test of our paired ones.

    Args:
        differences: one for each seed. Fewer than six cannot have p < 0.05.
    """
    return of_sign(sum(differences), sign_flip_test(differences))


def of_family(differences: Sequence[Sequence[float]]) -> list[Verdict]:
    """Verdicts on published differences above 0, with Holm's correction for their number.

    Args:
        differences: ours of each, one for each seed.
    """
    p = holm([sign_flip_test(of_claim) for of_claim in differences])
    return [of_sign(sum(d), corrected) for d, corrected in zip(differences, p, strict=True)]


def side(difference: float, p: float, undecided: str = Verdict.NO_EVIDENCE) -> str:
    """Where the first of two stands by the p of a test: above, below, or undecided."""
    if not p < LEVEL:
        return undecided
    return "above" if difference > 0 else "below"


def of_figure(
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
        values: one for each seed or split.
        published: the figure.
        margin: the smallest distance from it that counts, above 0.
        rounding: of its print: half a unit of its last digit.
        overlap: test rows over training rows, for random splits that share rows.
        deviation: the published standard deviation, for Welch's test.
        count: of the published values, for Welch's test.
        correct: of p-values, for the family of the tests.

    Returns:
        Reproduced if two one-sided tests show that our mean is within the margin of the figure;
        otherwise not reproduced if a test shows that it is another one, beyond its rounding;
        otherwise no evidence.
    """
    if math.isnan(deviation):
        ours = of_splits([value - published for value in values], overlap)
    else:
        ours = welch(values, published, deviation, count)
    test = ("figure", tuple(values), published)
    apart = ours._replace(mean=max(0.0, abs(ours.mean) - rounding))
    far, other = correct((*test, margin), ours.p_beyond(margin)), correct(test, apart.p)
    if far < LEVEL:
        return Verdict.REPRODUCED
    return Verdict.NOT_REPRODUCED if other < LEVEL else Verdict.NO_EVIDENCE


def together(verdicts: Iterable[Verdict | str]) -> Verdict:
    """Of a claim of several parts: reproduced if all are, not reproduced if any is not."""
    parts = {Verdict(verdict) for verdict in verdicts}
    if Verdict.NOT_REPRODUCED in parts:
        return Verdict.NOT_REPRODUCED
    if parts == {Verdict.REPRODUCED}:
        return Verdict.REPRODUCED
    return Verdict.NOT_COMPARABLE if parts == {Verdict.NOT_COMPARABLE} else Verdict.NO_EVIDENCE
