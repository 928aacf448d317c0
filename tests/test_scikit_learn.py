"""The exact posterior as estimators of scikit-learn: one posterior, however the points come."""

import math
import pickle

import numpy as np
import pytest
import torch
from failing import refuses
from scipy.integrate import dblquad
from scipy.stats import gamma, norm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import vcl_radial as vr
from vcl_radial.methods.bayes_linear import BayesLinear

BOTH = pytest.mark.parametrize("estimator", [vr.BayesLinearRegressor, vr.BayesLinearClassifier])


def points(estimator, n=90, d=4):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    if estimator is vr.BayesLinearClassifier:
        return x, (x[:, :3] + 0.3 * rng.normal(size=(n, 3))).argmax(1)
    return x, x @ rng.normal(size=d) + 2 + 0.5 * rng.normal(size=n)


@pytest.mark.slow
@BOTH
def test_scikit_learn_accepts_it(estimator):
    checks = check_estimator(estimator(), on_fail=None, on_skip=None)
    failed = {c["check_name"]: c["exception"] for c in checks if c["status"] == "failed"}
    assert checks
    assert not failed


@BOTH
@pytest.mark.parametrize("prior_scale", [0.7, None])
def test_batches_in_any_order_end_where_all_points_at_once_do(estimator, prior_scale):
    x, y = points(estimator)
    at_once = estimator(prior_scale=prior_scale).fit(x, y)
    for parts in (np.arange(90).reshape(9, 10), np.argsort(y)[::-1].reshape(3, 30)):
        in_parts = estimator(prior_scale=prior_scale)
        for rows in parts:
            in_parts.partial_fit(x[rows], y[rows])
        for name in ("coef_", "intercept_", "prior_scale_", "log_evidence_"):
            ends = getattr(in_parts, name), getattr(at_once, name)
            np.testing.assert_allclose(*ends, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(in_parts.predict(x), at_once.predict(x), rtol=1e-8)


@BOTH
def test_fit_forgets_and_a_copy_by_pickle_predicts_the_same(estimator):
    x, y = points(estimator)
    again = estimator().fit(x[:20], y[:20]).fit(x, y)
    loaded = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(loaded.predict(x), estimator().fit(x, y).predict(x))


def test_the_standard_deviation_is_that_of_the_closed_form():
    """The Student-t predictive: sqrt(b / (a - 1) (1 + phi' P^-1 phi)), with noise Gamma(a, b)."""
    x, y = points(vr.BayesLinearRegressor)
    learned = vr.BayesLinearRegressor(prior_scale=0.5, noise_shape=2.0, noise_rate=0.3).fit(x, y)
    phi = np.hstack([x, np.ones((90, 1))])
    precision = 4 * np.eye(5) + phi.T @ phi
    mean = np.linalg.solve(precision, phi.T @ y)
    rate = 0.3 + (y @ y - mean @ precision @ mean) / 2
    leverage = np.einsum("nd,nd->n", phi, np.linalg.solve(precision, phi.T).T)
    location, deviation = learned.predict(x, return_std=True)
    np.testing.assert_allclose(location, phi @ mean)
    np.testing.assert_allclose(deviation, np.sqrt(rate / (2 + 45 - 1) * (1 + leverage)))


def test_the_evidence_is_the_integral_over_weight_and_noise():
    """With x = 0 the slope plays no part: the intercept and the noise are integrated out."""
    y = np.array([0.4, -0.2, 1.1])

    def joint(weight, tau):
        prior = gamma.pdf(tau, 2.0, scale=1 / 0.5) * norm.pdf(weight, 0, 0.8 * tau**-0.5)
        return prior * norm.pdf(y, weight, tau**-0.5).prod()

    integral, _ = dblquad(joint, 1e-6, 40, -6, 6)
    settings = {"prior_scale": 0.8, "noise_shape": 2.0, "noise_rate": 0.5}
    learned = vr.BayesLinearRegressor(**settings).fit(np.zeros((3, 1)), y)
    assert learned.log_evidence_ == pytest.approx(math.log(integral), abs=1e-4)


@BOTH
def test_without_a_prior_scale_it_takes_the_one_with_the_largest_evidence(estimator):
    x, y = points(estimator)
    best = estimator().fit(x, y)
    for factor in (0.8, 1.25):
        other = estimator(prior_scale=factor * best.prior_scale_).fit(x, y)
        assert other.log_evidence_ < best.log_evidence_
    same = estimator(prior_scale=best.prior_scale_).fit(x, y)
    assert same.log_evidence_ == pytest.approx(best.log_evidence_)


def test_a_class_of_a_later_batch_learns_as_if_it_had_been_named_first():
    x, y = points(vr.BayesLinearClassifier)
    names = np.array(["b", "a", "c"])[y]
    early = names != "a"
    late = vr.BayesLinearClassifier().partial_fit(x[early], names[early])
    assert [*late.classes_] == ["b", "c"]
    late.partial_fit(x[~early], names[~early])
    known = vr.BayesLinearClassifier().partial_fit(x[early], names[early], classes=["a", "b", "c"])
    known.partial_fit(x[~early], names[~early])
    np.testing.assert_allclose(late.coef_, known.coef_)
    assert [*late.classes_] == ["a", "b", "c"]
    np.testing.assert_allclose(late.predict_proba(x).sum(1), 1)
    assert late.score(x, names) > 0.8


def test_probabilities_are_those_of_the_method_bayes_linear():
    x, y = points(vr.BayesLinearClassifier)
    network = vr.MLP(4, 3, hidden=(), multi_head=False, posterior=None)
    method = BayesLinear(network, prior_scale=0.7)
    vr.Trainer(method, learning_rate=0.1, epochs=1).fit([(x.astype("float32"), y)])
    log_p = method.predict(torch.tensor(x).float())
    learned = vr.BayesLinearClassifier(prior_scale=0.7).fit(x.astype("float32"), y)
    np.testing.assert_allclose(log_p.exp(), learned.predict_proba(x.astype("float32")), atol=1e-5)


def test_it_serves_in_a_pipeline():
    x, y = points(vr.BayesLinearRegressor)
    pipeline = make_pipeline(StandardScaler(), vr.BayesLinearRegressor()).fit(x, y)
    assert pipeline.score(x, y) > 0.8
    assert len(pipeline.predict(x, return_std=True)[1]) == 90


@pytest.mark.parametrize("name", ["prior_scale", "noise_shape", "noise_rate"])
def test_a_scale_that_is_not_positive_is_refused(name):
    with refuses(name, "0.0"):
        vr.BayesLinearRegressor(**{name: 0.0}).fit([[1.0], [2.0]], [1.0, 2.0])
