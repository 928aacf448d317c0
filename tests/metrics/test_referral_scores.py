"""Scores of a screening model, against independent implementations and by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import calibration, metrics
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
    binary_calibration_error,
)

from vcl_radial.metrics.referral import (
    accuracy_at_half,
    auc,
    average_precision,
    balanced_accuracy,
    binary_nll,
    brier,
    calibration_curve,
    entropy,
    mutual_information,
)


def sample(seed=0, n=600):
    """Classes with probabilities that tell something of them."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    classes = (latent + rng.normal(size=n) > 0.8).astype(np.int64)
    probabilities = 1 / (1 + np.exp(-1.5 * (latent - 0.8)))
    return classes, probabilities


@pytest.fixture(params=[0, 1, 2])
def batch(request):
    return sample(request.param)


# The distribution's own uncertainty


def test_entropy_agrees_with_scipy():
    probs = np.random.default_rng(0).dirichlet([0.3] * 4, (5, 6))
    score = entropy(torch.from_numpy(probs).log())
    assert score.numpy() == pytest.approx(stats.entropy(probs, axis=-1))


def test_a_class_without_probability_has_no_entropy():
    assert entropy(torch.tensor([0.0, -math.inf])).item() == 0


def test_mutual_information_is_that_of_the_joint_table_of_draw_and_class():
    """With draws equally likely, p(s, c) = p_s(c) / S; scikit-learn on its exact counts."""
    counts = np.array([[[1, 7], [4, 4]], [[6, 2], [3, 5]], [[2, 6], [8, 0]]])  # [S, N, C] of 8
    log_draws = torch.from_numpy(counts / 8).log()
    for row, score in enumerate(mutual_information(log_draws).tolist()):
        expected = metrics.mutual_info_score(None, None, contingency=counts[:, row])
        assert score == pytest.approx(expected, abs=1e-12)


def test_draws_that_agree_tell_nothing_and_draws_that_are_sure_of_others_tell_most():
    agree = torch.tensor([[0.2, 0.8]]).log().expand(5, 1, 2)
    assert mutual_information(agree).item() == pytest.approx(0, abs=1e-12)
    sure = torch.tensor([[[0.0, -math.inf]], [[-math.inf, 0.0]]])
    assert mutual_information(sure).item() == pytest.approx(math.log(2))
    assert mutual_information(agree[:1]).item() >= 0


def test_mutual_information_is_never_negative_nor_above_the_entropy():
    logits = 20 * torch.randn(16, 200, 2, generator=torch.Generator().manual_seed(0))
    log_draws = logits.log_softmax(-1)
    score = mutual_information(log_draws)
    mean = log_draws.double().logsumexp(0) - math.log(16)
    assert (score >= 0).all()
    assert (score <= entropy(mean) + 1e-12).all()


# Scores


def test_auc_is_the_share_of_pairs_in_the_right_order(batch):
    classes, probabilities = batch
    rounded = probabilities.round(1)  # with many ties
    ones, zeros = rounded[classes == 1], rounded[classes == 0]
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(ones, zeros)]
    assert auc(classes, rounded) == pytest.approx(100 * np.mean(pairs))


def test_auc_agrees_with_torchmetrics_and_scikit_learn(batch):
    classes, probabilities = batch
    expected = binary_auroc(torch.from_numpy(probabilities), torch.from_numpy(classes))
    assert auc(classes, probabilities) == pytest.approx(100 * expected.item(), abs=1e-4)
    rounded = probabilities.round(1)
    assert auc(classes, rounded) == pytest.approx(100 * metrics.roc_auc_score(classes, rounded))


def test_balanced_accuracy_and_accuracy_and_brier_agree_with_scikit_learn(batch):
    classes, probabilities = batch
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


def test_average_precision_agrees_with_torchmetrics_and_scikit_learn(batch):
    classes, probabilities = batch
    expected = binary_average_precision(torch.from_numpy(probabilities), torch.from_numpy(classes))
    assert average_precision(classes, probabilities) == pytest.approx(
        100 * expected.item(), abs=1e-4
    )
    rounded = probabilities.round(1)  # with many ties
    expected = metrics.average_precision_score(classes, rounded)
    assert average_precision(classes, rounded) == pytest.approx(100 * expected)


def test_a_score_that_tells_nothing_has_the_precision_of_its_class():
    classes = np.array([1, 0, 0, 0])
    assert average_precision(classes, np.zeros(4)) == pytest.approx(25)
    assert math.isnan(average_precision(np.zeros(4, np.int64), np.arange(4.0)))


def test_nll_agrees_with_scikit_learn_and_stays_finite_where_probabilities_round_to_one(batch):
    classes, probabilities = batch
    log_odds = np.log(probabilities / (1 - probabilities))
    assert binary_nll(classes, log_odds) == pytest.approx(metrics.log_loss(classes, probabilities))
    assert binary_nll(np.array([0, 1]), np.array([800.0, 800.0])) == pytest.approx(400)


WEIGHTED = [
    (auc, lambda y, s, w: 100 * metrics.roc_auc_score(y, s, sample_weight=w)),
    (
        average_precision,
        lambda y, s, w: 100 * metrics.average_precision_score(y, s, sample_weight=w),
    ),
    (
        accuracy_at_half,
        lambda y, s, w: 100 * metrics.accuracy_score(y, s > 0.5, sample_weight=w),
    ),
    (
        balanced_accuracy,
        lambda y, s, w: 100 * metrics.balanced_accuracy_score(y, s > 0.5, sample_weight=w),
    ),
    (brier, lambda y, s, w: metrics.brier_score_loss(y, s, sample_weight=w)),
]


@pytest.mark.parametrize(("score", "expected"), WEIGHTED)
def test_weights_are_those_of_scikit_learn_and_many_sets_go_at_once(score, expected):
    classes, probabilities = sample()
    scores = probabilities.round(2)
    rng = np.random.default_rng(3)
    weights = rng.uniform(size=(3, len(classes))) * (rng.uniform(size=(3, len(classes))) > 0.3)
    at_once = score(classes, scores, weights)
    assert at_once == pytest.approx([expected(classes, scores, w) for w in weights])
    twice = np.full(len(classes), 2.0)
    assert score(classes, scores, twice) == pytest.approx(score(classes, scores))


@pytest.mark.parametrize(
    "score", [auc, average_precision, balanced_accuracy, accuracy_at_half, binary_nll, brier]
)
def test_what_does_not_belong_together_is_refused(score):
    with pytest.raises(ValueError, match=r"must both be \[N\]"):
        score(np.array([0, 1]), np.array([0.5]))
    with pytest.raises(ValueError, match=r"must both be \[N\]"):
        score(np.zeros(0, np.int64), np.zeros(0))
    with pytest.raises(ValueError, match="0 or 1"):
        score(np.array([0, 2]), np.array([0.5, 0.5]))


# Calibration


def test_the_calibration_curve_agrees_with_scikit_learn(batch):
    classes, probabilities = batch
    curve = calibration_curve(classes, probabilities)
    observed, predicted = calibration.calibration_curve(classes, probabilities, n_bins=10)
    some = curve.count > 0
    assert curve.observed[some] == pytest.approx(observed)
    assert curve.predicted[some] == pytest.approx(predicted)
    assert curve.count.sum() == len(classes)


@pytest.mark.parametrize("bins", [1, 4, 10])
def test_its_error_agrees_with_torchmetrics(batch, bins):
    classes, probabilities = batch
    p, y = torch.from_numpy(probabilities), torch.from_numpy(classes)
    score = calibration_curve(classes, probabilities, bins).error
    assert score == pytest.approx(
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
