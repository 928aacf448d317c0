"""Scores under referral, against independent implementations and by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import calibration, metrics
from torchmetrics.functional.classification import binary_auroc, binary_calibration_error

from vcl_radial.metrics.referral import (
    accuracy_at_half,
    auc,
    balanced_accuracy,
    brier,
    calibration_curve,
    entropy,
    kept,
    mutual_information,
    referral_curve,
    resampled,
)


def sample(seed=0, n=600, patients=300):
    """Classes with probabilities that tell something of them, and who is on each photograph."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    classes = (latent + rng.normal(size=n) > 0.8).astype(np.int64)
    probabilities = 1 / (1 + np.exp(-1.5 * (latent - 0.8)))
    names = np.array([f"p{k % patients}" for k in range(n)])
    return classes, probabilities, names


@pytest.fixture(params=[0, 1, 2])
def batch(request):
    return sample(request.param)


def certain(probabilities):
    """Uncertainty that is largest at one half."""
    return -np.abs(probabilities - 0.5)


# The distribution's own uncertainty


def test_entropy_agrees_with_scipy():
    probs = np.random.default_rng(0).dirichlet([0.3] * 4, (5, 6))
    found = entropy(torch.from_numpy(probs).log())
    assert found.numpy() == pytest.approx(stats.entropy(probs, axis=-1))


def test_a_class_without_probability_has_no_entropy():
    assert entropy(torch.tensor([0.0, -math.inf])).item() == 0


def test_mutual_information_is_that_of_the_joint_table_of_draw_and_class():
    """With draws equally likely, p(s, c) = p_s(c) / S; scikit-learn on its exact counts."""
    counts = np.array([[[1, 7], [4, 4]], [[6, 2], [3, 5]], [[2, 6], [8, 0]]])  # [S, N, C] of 8
    log_draws = torch.from_numpy(counts / 8).log()
    for row, found in enumerate(mutual_information(log_draws).tolist()):
        expected = metrics.mutual_info_score(None, None, contingency=counts[:, row])
        assert found == pytest.approx(expected, abs=1e-12)


def test_draws_that_agree_tell_nothing_and_draws_that_are_sure_of_others_tell_most():
    agree = torch.tensor([[0.2, 0.8]]).log().expand(5, 1, 2)
    assert mutual_information(agree).item() == pytest.approx(0, abs=1e-12)
    sure = torch.tensor([[[0.0, -math.inf]], [[-math.inf, 0.0]]])
    assert mutual_information(sure).item() == pytest.approx(math.log(2))
    assert mutual_information(agree[:1]).item() >= 0


def test_mutual_information_is_never_negative_nor_above_the_entropy():
    logits = 20 * torch.randn(16, 200, 2, generator=torch.Generator().manual_seed(0))
    log_draws = logits.log_softmax(-1)
    found = mutual_information(log_draws)
    mean = log_draws.double().logsumexp(0) - math.log(16)
    assert (found >= 0).all()
    assert (found <= entropy(mean) + 1e-12).all()


# Referral


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=40),
    st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=60, deadline=None)
def test_whoever_is_kept_is_at_least_as_certain_as_whoever_is_referred(values, share):
    uncertainty = np.array(values, np.float64)
    left = kept(uncertainty, share)
    gone = np.setdiff1d(np.arange(len(values)), left)
    assert len(gone) == round(share * len(values))
    assert np.array_equal(left, np.unique(left))
    if len(left) and len(gone):
        assert uncertainty[left].max() <= uncertainty[gone].min()


def test_among_equally_uncertain_ones_the_last_are_referred():
    assert kept(np.array([1.0, 0.0, 1.0, 1.0]), 0.5).tolist() == [0, 1]


def test_only_the_order_of_uncertainties_counts(batch):
    _, probabilities, _ = batch
    uncertainty = certain(probabilities)
    assert np.array_equal(kept(uncertainty, 0.3), kept(np.exp(5 * uncertainty) - 9, 0.3))


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_impossible_shares_are_refused(share):
    with pytest.raises(ValueError, match="from 0 to below 1"):
        kept(np.zeros(3), share)


def test_an_uncertainty_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not a number"):
        kept(np.array([0.0, math.nan]), 0.1)


# Scores


def test_auc_is_the_share_of_pairs_in_the_right_order(batch):
    classes, probabilities, _ = batch
    rounded = probabilities.round(1)  # with many ties
    ones, zeros = rounded[classes == 1], rounded[classes == 0]
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(ones, zeros)]
    assert auc(classes, rounded) == pytest.approx(100 * np.mean(pairs))


def test_auc_agrees_with_torchmetrics_and_scikit_learn(batch):
    classes, probabilities, _ = batch
    expected = binary_auroc(torch.from_numpy(probabilities), torch.from_numpy(classes))
    assert auc(classes, probabilities) == pytest.approx(100 * expected.item(), abs=1e-4)
    rounded = probabilities.round(1)
    assert auc(classes, rounded) == pytest.approx(100 * metrics.roc_auc_score(classes, rounded))


def test_balanced_accuracy_and_accuracy_and_brier_agree_with_scikit_learn(batch):
    classes, probabilities, _ = batch
    predicted = probabilities > 0.5
    assert balanced_accuracy(classes, probabilities) == pytest.approx(
        100 * metrics.balanced_accuracy_score(classes, predicted)
    )
    assert accuracy_at_half(classes, probabilities) == pytest.approx(
        100 * metrics.accuracy_score(classes, predicted)
    )
    assert brier(classes, probabilities) == pytest.approx(
        metrics.brier_score_loss(classes, probabilities)
    )


def test_with_one_class_auc_and_balanced_accuracy_are_not_defined():
    ones = np.ones(3, np.int64)
    assert math.isnan(auc(ones, np.array([0.1, 0.2, 0.3])))
    assert math.isnan(balanced_accuracy(ones, np.array([0.1, 0.2, 0.3])))
    assert brier(ones, np.zeros(3)) == 1.0


@pytest.mark.parametrize("score", [auc, balanced_accuracy, accuracy_at_half, brier])
def test_what_does_not_belong_together_is_refused(score):
    with pytest.raises(ValueError, match=r"must both be \[N\]"):
        score(np.array([0, 1]), np.array([0.5]))
    with pytest.raises(ValueError, match=r"must both be \[N\]"):
        score(np.zeros(0, np.int64), np.zeros(0))
    with pytest.raises(ValueError, match="0 or 1"):
        score(np.array([0, 2]), np.array([0.5, 0.5]))


# Calibration


def test_the_calibration_curve_agrees_with_scikit_learn(batch):
    classes, probabilities, _ = batch
    curve = calibration_curve(classes, probabilities)
    observed, predicted = calibration.calibration_curve(classes, probabilities, n_bins=10)
    some = curve.count > 0
    assert curve.observed[some] == pytest.approx(observed)
    assert curve.predicted[some] == pytest.approx(predicted)
    assert curve.count.sum() == len(classes)


@pytest.mark.parametrize("bins", [1, 4, 10])
def test_its_error_agrees_with_torchmetrics(batch, bins):
    classes, probabilities, _ = batch
    p, y = torch.from_numpy(probabilities), torch.from_numpy(classes)
    found = calibration_curve(classes, probabilities, bins).error
    assert found == pytest.approx(
        100 * binary_calibration_error(p, y, n_bins=bins).item(), abs=1e-4
    )


def test_an_empty_bin_is_none_and_counts_for_nothing():
    curve = calibration_curve(np.array([0, 1]), np.array([0.0, 1.0]), bins=3)
    assert curve.count.tolist() == [1, 0, 1]
    assert np.isnan(curve.observed[1])
    assert curve.error == 0


def test_probabilities_on_an_edge_lie_below_it():
    curve = calibration_curve(np.array([0, 1, 1]), np.array([0.0, 0.5, 1.0]), bins=2)
    assert curve.count.tolist() == [2, 1]


# The curve


def test_the_curve_scores_what_is_kept(batch):
    classes, probabilities, names = batch
    curve = referral_curve(
        classes, probabilities, certain(probabilities), names, referred=[0.0, 0.25], resamples=0
    )
    sure = np.argsort(np.abs(probabilities - 0.5))[150:]
    assert curve.value.tolist() == pytest.approx(
        [auc(classes, probabilities), auc(classes[sure], probabilities[sure])]
    )
    assert np.isnan(curve.standard_error).all()


def test_uncertainty_that_is_right_raises_the_score_and_a_random_one_does_not():
    classes, probabilities, names = sample(n=4000, patients=4000)
    noise = np.random.default_rng(1).normal(size=4000)
    told = referral_curve(classes, probabilities, certain(probabilities), names, resamples=0)
    blind = referral_curve(classes, probabilities, noise, names, resamples=0)
    assert (np.diff(told.value) > 0).all()
    assert blind.value == pytest.approx(blind.value[0], abs=1.5)


def test_referring_the_mistakes_leaves_none():
    classes, probabilities, names = sample()
    mistakes = (probabilities > 0.5) != classes
    share = mistakes.mean()
    curve = referral_curve(
        classes,
        probabilities,
        mistakes.astype(float),
        names,
        score=accuracy_at_half,
        referred=[0.0, share],
        resamples=0,
    )
    assert curve.value.tolist() == pytest.approx([100 * (1 - share), 100.0])


def test_resamples_take_whole_patients_and_as_many_as_there_are():
    names = np.array(["a", "b", "a", "c", "c", "c", "d"])
    sizes = {"a": 2, "b": 1, "c": 3, "d": 1}
    chosen = np.zeros(4)
    for rows in resampled(names, 500, seed=0):
        times = {
            name: np.mean([(rows == r).sum() for r in np.flatnonzero(names == name)])
            for name in sizes
        }
        for name in sizes:
            assert len({(rows == r).sum() for r in np.flatnonzero(names == name)}) == 1
        assert sum(times.values()) == 4
        chosen += list(times.values())
    assert chosen / 500 == pytest.approx(1, abs=0.12)


def test_the_standard_error_is_that_of_a_mean_over_patients():
    """Of patients with two equal photographs it is sd / sqrt(patients), not over photographs."""
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(400) < 0.8, 2)
    names = np.repeat([f"p{k}" for k in range(400)], 2)
    classes = np.ones(800, np.int64)
    curve = referral_curve(
        classes,
        np.where(right, 0.9, 0.1),
        np.zeros(800),
        names,
        score=accuracy_at_half,
        referred=[0.0],
        resamples=2000,
    )
    p = right.mean()
    expected = 100 * math.sqrt(p * (1 - p) / 400)
    assert curve.standard_error[0] == pytest.approx(expected, rel=0.06)
    # 5 % and 95 % of a normal distribution lie 1.645 standard deviations from the mean.
    assert curve.value[0] - curve.lower[0] == pytest.approx(1.645 * expected, rel=0.15)
    assert curve.upper[0] - curve.value[0] == pytest.approx(1.645 * expected, rel=0.15)


def test_two_methods_are_resampled_alike_and_rows_may_come_in_any_order():
    classes, probabilities, names = sample(n=200, patients=100)
    order = np.random.default_rng(0).permutation(200)
    uncertainty = certain(probabilities)
    one = referral_curve(classes, probabilities, uncertainty, names, resamples=20)
    other = referral_curve(
        classes[order], probabilities[order], uncertainty[order], names[order], resamples=20
    )
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error)
    again = referral_curve(classes, probabilities, uncertainty, names, resamples=20, seed=1)
    assert again.standard_error != pytest.approx(one.standard_error)


def test_resamples_of_one_class_are_left_out():
    classes = np.array([1, 0, 0])
    curve = referral_curve(
        classes, np.array([0.9, 0.2, 0.4]), np.zeros(3), np.array(["a", "b", "c"]), referred=[0.0]
    )
    assert curve.value.tolist() == [100.0]
    assert curve.standard_error.tolist() == [0.0]
    all_one = referral_curve(
        np.ones(3, np.int64), np.zeros(3), np.zeros(3), np.array(["a", "b", "c"]), referred=[0.0]
    )
    assert np.isnan(all_one.standard_error).all()


def test_a_curve_of_what_does_not_belong_together_is_refused():
    classes, probabilities, names = sample(n=20, patients=10)
    with pytest.raises(ValueError, match="do not belong together"):
        referral_curve(classes, probabilities, certain(probabilities)[:-1], names)
