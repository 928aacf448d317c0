"""Differences whose unit of replication is a cluster: a search, an order of the classes, or a seed.

Values of one cluster depend on each other, so that a cluster counts once, by its mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vcl_radial.metrics.estimates import Estimate, estimate_over_splits
from vcl_radial.metrics.seeds import mean_and_standard_error

DRAWS, FEWEST_CLUSTERS = 10_000, 4
"""Draws of the bootstrap, and the fewest clusters that have an interval."""


class Interval(NamedTuple):
    """An interval."""

    low: float
    high: float


def two_level_estimate(clusters: Sequence[Sequence[float]]) -> Estimate:
    """The mean effect of differences with two sources of spread, such as searches and seeds.

        d_sk = effect + search_s + seed_sk,    t = mean(d_s) / (sd(d_s) / sqrt(S)),   S - 1 degrees

    d_s is the mean of search s. Its variance has both sources, whatever their shares are, so that
    the t test of these means is exact for normal values and equal numbers of seeds.

    Args:
        clusters: the differences of each of S searches.
    """
    return estimate_over_splits([mean_and_standard_error(cluster)[0] for cluster in clusters])


def bootstrap_interval(
    clusters: Sequence[Sequence[float]], level: float = 0.95, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """Percentile interval of the mean over clusters, by drawing whole clusters with replacement.

    With few clusters it is narrow: of ten normal values a 95 % interval holds the mean in about
    90 % of cases, of five in about 83 %.

    Args:
        clusters: the values of each cluster, at least one.
        level: the share of draws inside.
        draws: number of draws.
        seed: seed of the draws.
    """
    means = np.array([mean_and_standard_error(cluster)[0] for cluster in clusters])
    chosen = np.random.default_rng(seed).integers(len(means), size=(draws, len(means)))
    outside = (1 - level) / 2
    return Interval(*map(float, np.quantile(means[chosen].mean(axis=1), [outside, 1 - outside])))
