"""Average ranks of methods over several benchmarks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata


class Rank(NamedTuple):
    """An average rank with the ends of its interval; the ends are nan where there is none."""

    mean: float
    low: float
    high: float


def average_ranks(
    scores: Mapping[str, pd.DataFrame], level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> dict[str, Rank]:
    """The average rank of each method over benchmarks, with a bootstrap interval over seeds.

        r_m = 1/B Σ_b rank of s_bm among all s_b,    s_bm = mean over seeds

    The best mean has rank 1, and equal means share their average rank. The interval is of these
    benchmarks: each draw takes the seeds of every benchmark with replacement, for all methods
    together. From few seeds it is narrow (`clusters.bootstrap_interval`).

    Args:
        scores: by benchmark, a table `[seeds, methods]` of scores, the higher the better. Only the
            methods of all benchmarks are ranked.
        level: the share of draws inside the interval.
        draws: number of draws.
        seed: seed of the draws.

    Returns:
        The ranks, the best first. A benchmark with fewer than two seeds that all methods share
        leaves no interval.

    Source: Demšar (2006), "Statistical comparisons of classifiers over multiple data sets", 3.2.
    """
    tables = list(scores.values())
    ranked = [
        str(m)
        for m in (tables[0] if tables else ())
        if all(m in t and t[m].notna().any() for t in tables)
    ]
    if not ranked:
        return {}
    means = np.mean([rankdata(-table[ranked].mean()) for table in tables], axis=0)
    low = high = np.full(len(ranked), math.nan)
    shared = [table[ranked].dropna().to_numpy() for table in tables]
    if min(map(len, shared)) > 1:
        generator = np.random.default_rng(seed)
        drawn = np.zeros((draws, len(ranked)))
        for values in shared:
            chosen = generator.integers(len(values), size=(draws, len(values)))
            drawn += rankdata(-values[chosen].mean(axis=1), axis=1) / len(shared)
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    ranks = {m: Rank(*map(float, ends)) for m, *ends in zip(ranked, means, low, high, strict=True)}
    return dict(sorted(ranks.items(), key=lambda item: item[1].mean))
