"""What is kept under referral, and areas under retention curves: against loops, and truths."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from vcl_radial.metrics.referral import accuracy_at_half, auc
from vcl_radial.metrics.retention import (
    SHARES,
    class_balanced,
    over_patients,
    ranks,
    resampled,
    retained,
    retention_areas,
)

AREAS = ["accuracy", "nll", "auc", "auprc"]
UP = {"accuracy": 1, "nll": -1, "auc": 1, "auprc": 1}


def sample(seed=0, n=600):
    """Classes, probabilities that tell something of them, log-odds, and how certain these are."""
    rng = np.random.default_rng(seed)
    log_odds = 1.5 * rng.normal(size=n)
    classes = (rng.uniform(size=n) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)
    return classes, 1 / (1 + np.exp(-log_odds)), log_odds, -np.abs(log_odds)


def areas(classes, probabilities, log_odds, uncertainty, weights=None):
    return retention_areas(classes, probabilities, log_odds, ranks(uncertainty), weights)


# What is kept


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.floats(0.01, 1))
@settings(max_examples=60, deadline=None)
def test_what_is_kept_is_at_least_as_certain_as_what_is_referred(values, share):
    uncertainty = np.array(values, np.float64)
    (kept,) = retained(ranks(uncertainty), np.array([share]))
    assert kept.sum() == pytest.approx(share * len(values))
    assert ((kept >= 0) & (kept <= 1)).all()
    wholly, gone = uncertainty[kept == 1], uncertainty[kept == 0]
    if len(wholly) and len(gone):
        assert wholly.max() < gone.min()
    # Equally uncertain ones are kept alike.
    assert len(set(zip(uncertainty, kept, strict=True))) == len(set(uncertainty))


def test_only_the_order_of_uncertainties_counts():
    classes, probabilities, log_odds, uncertainty = sample()
    one = areas(classes, probabilities, log_odds, uncertainty)
    other = areas(classes, probabilities, log_odds, np.exp(5 * uncertainty) - 9)
    assert one == other


@pytest.mark.parametrize("share", [0.0, 1.1, math.nan])
def test_impossible_shares_are_refused(share):
    with pytest.raises(ValueError, match="from above 0 to 1"):
        retained(np.arange(3), np.array([0.5, share]))


def test_an_uncertainty_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not a number"):
        ranks(np.array([0.0, math.nan]))


def test_a_score_of_what_is_kept_is_that_of_the_most_certain_rows():
    classes, probabilities, _, uncertainty = sample()
    kept = retained(ranks(uncertainty), np.array([0.75]))
    sure = np.argsort(uncertainty)[:450]
    assert auc(classes, probabilities, kept) == pytest.approx(
        [100 * metrics.roc_auc_score(classes[sure], probabilities[sure])]
    )


def test_referring_the_mistakes_leaves_none():
    classes, probabilities, _, _ = sample()
    mistakes = (probabilities > 0.5) != classes
    kept = retained(ranks(mistakes.astype(float)), np.array([1, 1 - mistakes.mean()]))
    score = accuracy_at_half(classes, probabilities, kept)
    assert score == pytest.approx([100 * (1 - mistakes.mean()), 100])


# Areas


def test_areas_are_means_over_the_most_certain_rows_one_share_after_another():
    """scikit-learn on the rows themselves; 400 rows are cut at whole rows by every share."""
    classes, probabilities, log_odds, uncertainty = sample(n=400)
    order = np.argsort(uncertainty)
    scores = {name: [] for name in AREAS}
    for share in SHARES:
        rows = order[: round(400 * share)]
        y, p = classes[rows], probabilities[rows]
        scores["accuracy"].append(100 * metrics.accuracy_score(y, p > 0.5))
        scores["nll"].append(metrics.log_loss(y, p, labels=[0, 1]))
        scores["auc"].append(100 * metrics.roc_auc_score(y, p))
        scores["auprc"].append(100 * metrics.average_precision_score(y, p))
    expected = {name: np.mean(values) for name, values in scores.items()}
    assert areas(classes, probabilities, log_odds, uncertainty) == pytest.approx(expected)


@pytest.mark.parametrize("name", AREAS)
def test_the_order_that_knows_the_mistakes_is_better_than_a_random_one_and_that_than_its_opposite(
    name,
):
    classes, probabilities, log_odds, _ = sample(n=4000)
    loss = np.logaddexp(0, (1 - 2 * classes) * log_odds)
    random = np.random.default_rng(1).normal(size=4000)
    best, blind, worst = (
        UP[name] * areas(classes, probabilities, log_odds, order)[name]
        for order in (loss, random, -loss)
    )
    assert best > blind > worst
    at_all = UP[name] * areas(classes, probabilities, log_odds, np.zeros(4000))[name]
    assert blind == pytest.approx(at_all, rel=0.03)


def test_where_all_are_equally_certain_every_area_is_the_score_of_all():
    classes, probabilities, log_odds, _ = sample()
    expected = {
        "accuracy": 100 * metrics.accuracy_score(classes, probabilities > 0.5),
        "nll": metrics.log_loss(classes, probabilities),
        "auc": 100 * metrics.roc_auc_score(classes, probabilities),
        "auprc": 100 * metrics.average_precision_score(classes, probabilities),
    }
    assert areas(classes, probabilities, log_odds, np.zeros(600)) == pytest.approx(expected)


def test_ties_count_as_on_average_over_their_orders():
    """Sums over what is kept: all orders of a table of six rows, cut at whole rows."""
    classes, probabilities, _, _ = sample(seed=4, n=6)
    uncertainty = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    shares = np.arange(1, 7) / 6
    curves = []
    for middle in itertools.permutations(range(1, 5)):
        order = np.array([0, *middle, 5])
        right = (probabilities[order] > 0.5) == classes[order]
        curves.append(100 * right.cumsum() / np.arange(1, 7))
    kept = retained(ranks(uncertainty), shares)
    score = accuracy_at_half(classes, probabilities, kept)
    assert score == pytest.approx(np.mean(curves, 0))
    assert np.ptp(curves, axis=0).max() > 10


@pytest.mark.parametrize("name", AREAS)
def test_coarse_uncertainties_have_the_area_of_their_random_orders(name):
    classes, probabilities, log_odds, uncertainty = sample()
    coarse = uncertainty.round()
    rng = np.random.default_rng(0)
    broken = [
        areas(classes, probabilities, log_odds, coarse + 1e-6 * rng.uniform(size=600))[name]
        for _ in range(200)
    ]
    error = np.std(broken) / math.sqrt(200)
    tied = areas(classes, probabilities, log_odds, coarse)[name]
    assert abs(tied - np.mean(broken)) < 4 * error + 0.02 * np.std(broken)


def test_rows_may_come_in_any_order():
    classes, probabilities, log_odds, uncertainty = sample()
    order = np.random.default_rng(0).permutation(600)
    coarse = uncertainty.round(1)
    one = areas(classes, probabilities, log_odds, coarse)
    other = areas(classes[order], probabilities[order], log_odds[order], coarse[order])
    assert one == pytest.approx(other)


def test_a_class_that_is_missing_where_the_model_is_most_certain_leaves_the_other_shares():
    classes, probabilities, log_odds, _ = sample()
    healthy_first = classes.astype(float)
    score = areas(classes, probabilities, log_odds, healthy_first)
    assert all(math.isfinite(value) for value in score.values())
    one_class = areas(np.zeros(600, np.int64), probabilities, log_odds, healthy_first)
    assert math.isnan(one_class["auc"])
    assert math.isnan(one_class["auprc"])
    assert math.isfinite(one_class["nll"])


def test_balanced_areas_do_not_depend_on_how_frequent_a_class_is():
    classes, probabilities, log_odds, uncertainty = sample()
    rows = np.concatenate([np.arange(600), *[np.flatnonzero(classes == 0)] * 3])
    tables = [
        (classes, probabilities, log_odds, uncertainty),
        (classes[rows], probabilities[rows], log_odds[rows], uncertainty[rows]),
    ]
    one, other = (areas(*table, class_balanced(table[0])) for table in tables)
    assert one == pytest.approx(other)
    plain, more_healthy = (areas(*table) for table in tables)
    assert abs(plain["auprc"] - more_healthy["auprc"]) > 5
    weights = class_balanced(classes)
    assert weights[classes == 1].sum() == pytest.approx(0.5)
    assert weights[classes == 0].sum() == pytest.approx(0.5)


# Patients


def test_resamples_take_whole_patients_and_as_many_as_there_are():
    names = np.array(["a", "b", "a", "c", "c", "c", "d"])
    draws = resampled(names, 500, seed=0)
    first = [0, 1, 3, 6]
    for name, row in zip("abcd", first, strict=True):
        rows = np.flatnonzero(names == name)
        assert (draws[:, rows] == draws[:, [row]]).all()
    assert (draws[:, first].sum(1) == 4).all()
    assert draws[:, first].mean(0) == pytest.approx(1, abs=0.12)


def test_the_standard_error_is_that_of_a_mean_over_patients():
    """Of patients with two equal photographs it is sd / sqrt(patients), not over photographs."""
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(400) < 0.8, 2)
    names = np.repeat([f"p{k}" for k in range(400)], 2)
    classes, probabilities = np.ones(800, np.int64), np.where(right, 0.9, 0.1)
    estimate = over_patients(
        lambda weights: np.array([accuracy_at_half(classes, probabilities, weights)]),
        resampled(names, 2000, 0),
    )
    p = right.mean()
    expected = 100 * math.sqrt(p * (1 - p) / 400)
    assert estimate.value[0] == pytest.approx(100 * p)
    assert estimate.standard_error[0] == pytest.approx(expected, rel=0.06)
    # 5 % and 95 % of a normal distribution lie 1.645 standard deviations from the mean.
    assert estimate.value[0] - estimate.lower[0] == pytest.approx(1.645 * expected, rel=0.15)
    assert estimate.upper[0] - estimate.value[0] == pytest.approx(1.645 * expected, rel=0.15)


def test_two_methods_are_resampled_alike_and_rows_may_come_in_any_order_then_too():
    names = np.array([f"p{k % 100}" for k in range(200)])
    order = np.random.default_rng(0).permutation(200)
    assert np.array_equal(resampled(names, 20, 0)[:, order], resampled(names[order], 20, 0))
    assert not np.array_equal(resampled(names, 20, 0), resampled(names, 20, 1))


def test_resamples_of_one_class_are_left_out():
    classes, scores = np.array([1, 0, 0]), np.array([0.9, 0.2, 0.4])
    draws = resampled(np.array(["a", "b", "c"]), 50, 0)
    estimate = over_patients(lambda w: np.array([auc(classes, scores, w)]), draws)
    assert (estimate.value, estimate.standard_error) == ([100.0], [0.0])
    ones = np.ones(3, np.int64)
    all_one = over_patients(lambda w: np.array([auc(ones, scores, w)]), draws)
    assert np.isnan(all_one.standard_error).all()
    none = over_patients(lambda w: np.array([auc(classes, scores, w)]), draws[:0])
    assert np.isnan(none.standard_error).all()
