"""Intervals over clusters: closed forms, and the share of simulated intervals with the truth."""

import math

import numpy as np
import pytest
from scipy import stats

from vcl_radial.metrics.clusters import bootstrap_interval, two_level_estimate
from vcl_radial.metrics.verdicts import side_of_interval

CASES = 400


def coverage(intervals, truth=0.0):
    return np.mean([low <= truth <= high for low, high in intervals])


def test_two_levels_are_the_t_test_of_the_means_of_searches():
    searches = [[1.0, 3.0], [2.0, 2.0], [4.0, 0.0], [5.0, 7.0]]
    theirs = stats.ttest_1samp([2.0, 2.0, 2.0, 6.0], 0.0)
    ours = two_level_estimate(searches)
    assert (ours.mean, ours.degrees) == (3.0, 3)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.interval() == pytest.approx(tuple(theirs.confidence_interval()))
    assert ours.interval(0.9) == pytest.approx(tuple(theirs.confidence_interval(0.9)))


@pytest.mark.parametrize("between", [0.0, 0.5, 2.0])
def test_two_levels_hold_the_effect_whatever_the_share_of_searches_is(between):
    rng = np.random.default_rng(0)
    values = 0.7 + between * rng.normal(size=(CASES, 4, 1)) + rng.normal(size=(CASES, 4, 4))
    intervals = [two_level_estimate(case).interval() for case in values.tolist()]
    error = math.sqrt(0.95 * 0.05 / CASES)
    assert coverage(intervals, 0.7) == pytest.approx(0.95, abs=3 * error)
    # All seeds as if they were independent miss it, once a search has a spread.
    pooled = [two_level_estimate([[x] for x in np.ravel(case)]).interval() for case in values]
    assert (coverage(pooled, 0.7) < 0.9) == (between > 0)


def test_the_bootstrap_has_the_quantiles_of_two_clusters():
    # The means of two draws are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4.
    assert bootstrap_interval([[0.0, 0.0], [1.0]], 0.6) == (0.0, 1.0)
    assert bootstrap_interval([[0.0, 0.0], [1.0]], 0.4) == (0.5, 0.5)


def test_the_bootstrap_is_as_wide_as_the_normal_interval_of_many_clusters():
    values = np.random.default_rng(1).normal(size=400)
    low, high = bootstrap_interval(values[:, None].tolist())
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.05)
    assert (low + high) / 2 == pytest.approx(values.mean(), abs=0.01)
    assert bootstrap_interval([[2.0]] * 5) == (2.0, 2.0)


@pytest.mark.parametrize(("clusters", "share"), [(5, 0.83), (10, 0.90), (30, 0.94)])
def test_the_bootstrap_holds_the_mean_as_often_as_it_says(clusters, share):
    rng, cases = np.random.default_rng(0), 1000
    drawn = rng.normal(size=(cases, clusters, 1)).tolist()
    intervals = [bootstrap_interval(case, draws=500, seed=n) for n, case in enumerate(drawn)]
    assert coverage(intervals) == pytest.approx(share, abs=0.03)


def test_an_interval_is_on_a_side_within_the_margin_or_undecided():
    assert side_of_interval((0.6, 2.0), (0.7, 1.9), 0.5) == "above"
    assert side_of_interval((-2.0, -0.6), (-1.9, -0.7), 0.5) == "below"
    assert side_of_interval((0.1, 0.45), (0.15, 0.4), 0.5) == "within"
    assert side_of_interval((-0.3, 0.9), (-0.2, 0.8), 0.5) == "undecided"
    assert side_of_interval((math.nan, math.nan), (math.nan, math.nan), 0.5) == "undecided"
