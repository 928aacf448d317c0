"""Means beside their t distributions, against scipy and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from vcl_radial.metrics.estimates import Estimate, estimate_over_splits, welch

DIFFERENCES = [0.4, -0.1, 0.7, 0.2, 0.9, 0.3, 0.5]


def test_without_an_overlap_it_is_students_paired_test():
    ours, theirs = estimate_over_splits(DIFFERENCES), stats.ttest_1samp(DIFFERENCES, 0.0)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.interval() == pytest.approx(tuple(theirs.confidence_interval()))


def test_splits_that_share_rows_have_the_variance_of_nadeau_and_bengio():
    k, overlap = len(DIFFERENCES), 1 / 9
    variance = (1 / k + overlap) * np.var(DIFFERENCES, ddof=1)
    ours = estimate_over_splits(DIFFERENCES, overlap)
    assert ours.error == pytest.approx(math.sqrt(variance))
    assert ours.p == pytest.approx(2 * stats.t.sf(ours.mean / math.sqrt(variance), k - 1))


def test_the_interval_of_splits_holds_the_truth_where_that_of_seeds_does_not():
    # Differences with the correlation of splits, rho / (1 + rho) for rho test rows a training row.
    rng, k, rho = np.random.default_rng(0), 20, 1 / 9
    shared = rng.normal(scale=math.sqrt(rho), size=(2000, 1))
    values = shared + rng.normal(size=(2000, k))

    def coverage(overlap):
        ends = [estimate_over_splits(row, overlap).interval() for row in values]
        return np.mean([low <= 0 <= high for low, high in ends])

    assert coverage(rho) == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / 2000))
    assert coverage(0.0) < 0.8


def test_welchs_test_is_that_of_scipy():
    values = [99.1, 98.7, 99.4, 99.0]
    theirs = stats.ttest_ind_from_stats(
        np.mean(values), np.std(values, ddof=1), 4, 98.0, 1.1, 10, equal_var=False
    )
    ours = welch(values, 98.0, 1.1, 10)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.mean / ours.error == pytest.approx(theirs.statistic)


def test_equivalence_is_the_larger_of_two_one_sided_tests():
    above = stats.ttest_1samp(DIFFERENCES, -0.8, alternative="greater").pvalue
    below = stats.ttest_1samp(DIFFERENCES, 0.8, alternative="less").pvalue
    assert estimate_over_splits(DIFFERENCES).p_beyond(0.8) == pytest.approx(max(above, below))
    assert estimate_over_splits([-d for d in DIFFERENCES]).p_beyond(0.8) == pytest.approx(
        max(above, below)
    )


@pytest.mark.parametrize("scale", [0.5, 0.9, 1.1, 3.0])
def test_equivalence_is_shown_exactly_where_the_90_percent_interval_lies_within_the_margin(scale):
    estimate = estimate_over_splits(DIFFERENCES)
    low, high = estimate.interval(0.9)
    margin = scale * max(-low, high)
    assert (estimate.p_beyond(margin) < 0.05) == (scale > 1)


def test_a_difference_at_the_margin_is_called_equivalent_in_at_most_one_of_twenty():
    draws = np.random.default_rng(0).normal(loc=0.5, scale=0.2, size=(2000, 6))
    wrong = np.mean([estimate_over_splits(row).p_beyond(0.5) < 0.05 for row in draws])
    assert wrong == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 2000))


def test_a_wide_spread_never_shows_equivalence():
    wide = [100 * d for d in (-1.0, 1.0, -1.0, 1.0, -1.0, 1.0)]
    assert estimate_over_splits(wide).mean == 0.0
    assert estimate_over_splits(wide).p_beyond(0.5) > 0.4


def test_one_value_has_no_test():
    alone = estimate_over_splits([1.0])
    assert math.isnan(alone.p)
    assert math.isnan(alone.p_beyond(10.0))


def test_values_without_a_spread_differ_surely_or_not_at_all():
    assert Estimate(0.0, 0.0, 5).p == 1.0
    assert Estimate(0.2, 0.0, 5).p == 0.0
    assert Estimate(0.2, 0.0, 5).p_beyond(0.5) == 0.0
    assert Estimate(0.7, 0.0, 5).p_beyond(0.5) == 1.0
