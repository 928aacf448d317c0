"""Levels of a score: what counts as having learnt nothing, and what as good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from vcl_radial.sweeps.results import SearchResult


class Levels(NamedTuple):
    """Scores that count as having learnt nothing, and as good.

    Attributes:
        nothing: a configuration with a lower score has learnt nothing.
        good: a configuration with this score or a higher one is good.
    """

    nothing: float
    good: float

    @property
    def explanation(self) -> str:
        """The origin of the levels."""
        return (
            f"nothing learnt: below {self.nothing:.1f}, a tenth of the way from chance to best; "
            f"good: from {self.good:.1f}, nine tenths of that way"
        )


def levels(searched: Sequence[SearchResult]) -> Levels | None:
    """The levels of a score: a tenth and nine tenths of the way from chance to the best.

    Chance is the mean score without training; the best score is the best one of all methods.

    Args:
        searched: results of the methods on one benchmark.

    Returns:
        The levels; None if no trial finished.
    """
    chances = [s.chance for s in searched if s.chance is not None]
    scores = [t.score for s in searched for t in s.trials if t.score is not None]
    if not chances or not scores:
        return None
    chance, best = fmean(chances), max(scores)
    return Levels(chance + 0.1 * (best - chance), chance + 0.9 * (best - chance))


def shares(searched: SearchResult, level: Levels) -> tuple[float, float]:
    """The shares of a method's configurations that learn nothing and that are good, in per cent.

    A diverged trial has learnt nothing; pruned or failed trials have no score and do not count.
    """
    scores = counted(searched)
    per_cent = 100.0 / max(len(scores), 1)
    nothing = sum(not score >= level.nothing for score in scores)
    good = sum(score >= level.good for score in scores)
    return per_cent * nothing, per_cent * good


def counted(searched: SearchResult) -> list[float]:
    """The scores that count; nan for a diverged trial, which reaches no score."""
    return [
        math.nan if t.score is None else t.score
        for t in searched.trials
        if t.outcome in ("finished", "diverged")
    ]
