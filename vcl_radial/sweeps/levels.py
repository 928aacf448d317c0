"""Levels of a score: what counts as having learnt nothing, and what as good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcl_radial.sweeps.results import SearchResult


@dataclass(frozen=True)
class Levels:
    """Scores that count as having learnt nothing, and as good.

    Attributes:
        nothing: a configuration with a lower score has learnt nothing.
        good: a configuration with this score or a higher one is good.
        explanation: text on the origin of the levels.
    """

    nothing: float
    good: float
    explanation: str


@dataclass(frozen=True)
class Shares:
    """Shares of a method's configurations that learn nothing or are good, in per cent.

    A diverged trial has learnt nothing; pruned or failed trials have no score and do not count.
    """

    nothing: float
    good: float


def levels(searched: Sequence[SearchResult]) -> Levels | None:
    """The levels of a score: a tenth and nine tenths of the way from chance to the best.

    Chance is the mean score without training, the best score that of all methods.

    Args:
        searched: results of the methods on one benchmark.

    Returns:
        The levels; None if no trial finished.
    """
    chances = [s.chance for s in searched if s.chance is not None]
    scores = [t.score for s in searched for t in s.trials if t.score is not None]
    if not chances or not scores:
        return None
    chance, best = float(np.mean(chances)), max(scores)
    nothing, good = (chance + part * (best - chance) for part in (0.1, 0.9))
    explanation = (
        f"nothing learnt: below {nothing:.1f}, a tenth of the way from chance to best; good: from "
        f"{good:.1f}, nine tenths of that way"
    )
    return Levels(nothing, good, explanation)


def shares(searched: SearchResult, level: Levels) -> Shares:
    """The shares of a method's configurations that learn nothing, and that are good."""
    scores = np.array(counted(searched))
    if len(scores) == 0:
        return Shares(0.0, 0.0)
    nothing = 100.0 * float(np.mean(~(scores >= level.nothing)))
    return Shares(nothing, 100.0 * float(np.mean(scores >= level.good)))


def counted(searched: SearchResult) -> list[float]:
    """The scores that count; nan for a diverged trial, which reaches no score."""
    return [
        t.score if t.score is not None else float("nan")
        for t in searched.trials
        if t.outcome in ("finished", "diverged")
    ]
