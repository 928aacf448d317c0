"""What counts as having learnt nothing, and as good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vcl_radial.sweeps.results import SearchResult


@dataclass(frozen=True)
class Levels:
    """What counts as having learnt nothing, and as good.

    Attributes:
        nothing: below it a configuration has learnt nothing.
        good: from it on a configuration is good.
        words: where they come from.
    """

    nothing: float
    good: float
    words: str


@dataclass(frozen=True)
class Shares:
    """What became of the configurations of a method, in per cent of those that were tried.

    A diverged trial has learnt nothing; those given up or failed have no score and do not count.
    """

    nothing: float
    good: float


def levels(searched: Sequence[SearchResult]) -> Levels | None:
    """The levels for a score: a tenth and nine tenths of the way from chance to the best.

    Chance is the mean score without training, the best that of all methods.

    Args:
        searched: the methods on one benchmark.

    Returns:
        None where no trial finished.
    """
    chances = [s.chance for s in searched if s.chance is not None]
    scores = [t.score for s in searched for t in s.trials if t.score is not None]
    if not chances or not scores:
        return None
    chance, best = float(np.mean(chances)), max(scores)
    nothing, good = (chance + part * (best - chance) for part in (0.1, 0.9))
    words = (
        f"nothing learnt: below {nothing:.1f}, a tenth of the way from chance to best; good: from "
        f"{good:.1f}, nine tenths of that way"
    )
    return Levels(nothing, good, words)


def shares(searched: SearchResult, level: Levels) -> Shares:
    """How many configurations of a method learn nothing, and how many are good."""
    scores = np.array(counted(searched))
    if len(scores) == 0:
        return Shares(0.0, 0.0)
    nothing = 100.0 * float(np.mean(~(scores >= level.nothing)))
    return Shares(nothing, 100.0 * float(np.mean(scores >= level.good)))


def counted(searched: SearchResult) -> list[float]:
    """The scores that count; nan for a diverged trial, which reaches none."""
    return [
        t.score if t.score is not None else float("nan")
        for t in searched.trials
        if t.outcome in ("finished", "diverged")
    ]
