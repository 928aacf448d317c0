from itertools import pairwise

import numpy as np
import pytest
import torch
from regression_helpers import toy
from scipy import stats
from sklearn.linear_model import Ridge

from vcl_radial.tracks.regression.conjugate import NormalGamma
from vcl_radial.tracks.regression.sequence import slices, train_in_sequence
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.training import train_and_score


def problem(n=60, d=4):
    torch.manual_seed(0)
    x = torch.randn(n, d).double()
    return x, x @ torch.randn(d).double() + 0.5 * torch.randn(n).double()


def test_in_parts_or_at_once_the_conjugate_posterior_is_the_same():
    x, y = problem()
    at_once = NormalGamma.prior(4, 2.0, 1.0, 0.1).update(x, y)
    in_parts = NormalGamma.prior(4, 2.0, 1.0, 0.1)
    for rows in slices(x, 5):
        in_parts = in_parts.update(x[rows], y[rows])
    for name in ("mean", "precision", "shape", "rate"):
        torch.testing.assert_close(getattr(in_parts, name), getattr(at_once, name))


def test_the_predictive_is_that_of_bayes_rule():
    """p(y_new | D) = p(D, y_new) / p(D), with the evidence as a multivariate Student-t."""
    x, y = problem(n=9, d=2)
    new = torch.tensor([[0.7, -1.2]], dtype=torch.float64)
    prior = NormalGamma.prior(2, 1.5, 2.0, 0.8)

    def log_evidence(x, y):
        spread = torch.eye(len(y)).double() + 1.5**2 * x @ x.T
        t = stats.multivariate_t(np.zeros(len(y)), (0.8 / 2.0) * spread.numpy(), df=4.0)
        return t.logpdf(y.numpy())

    location, scale, degrees = prior.update(x, y).predictive(new)
    for target in (-2.0, 0.3, 1.0):
        found = stats.t.logpdf(target, degrees, location.item(), scale.item())
        together = log_evidence(
            torch.cat([x, new]), torch.cat([y, torch.tensor([target], dtype=torch.float64)])
        )
        assert found == pytest.approx(together - log_evidence(x, y), abs=1e-9)


def test_the_location_is_that_of_ridge_regression():
    x, y = problem()
    location, _, _ = NormalGamma.prior(4, 0.3, 1.0, 0.1).update(x, y).predictive(x)
    ridge = Ridge(alpha=0.3**-2, fit_intercept=False).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(location, ridge.predict(x.numpy()), rtol=1e-9)


def test_slices_follow_the_first_principal_component_and_divide_the_rows():
    torch.manual_seed(0)
    long = torch.randn(53)
    x = torch.stack([0.1 * torch.randn(53), -5 * long, 0.1 * torch.randn(53)], 1)
    parts = slices(x, 4)
    assert sorted(torch.cat(parts).tolist()) == list(range(53))
    assert {len(part) for part in parts} == {13, 14}
    along = [-5 * long[part] for part in parts]  # the axis points to its largest entry's plus
    for before, after in pairwise(along):
        assert before.max() < after.min() + 0.2


def test_where_the_rows_lie_does_not_decide_along_what_they_are_sliced():
    """The component is that of centred rows: their covariance, not their second moment."""
    torch.manual_seed(0)
    x = torch.randn(40, 3).double() * torch.tensor([0.1, 3.0, 0.1])
    axis = torch.from_numpy(np.linalg.eigh(np.cov(x.T.numpy()))[1][:, -1])
    expected = torch.tensor_split((x @ axis * axis[1].sign()).argsort(), 4)
    for offset in ([0.0, 0.0, 0.0], [100.0, 0.0, -50.0]):
        found = slices(x + torch.tensor(offset), 4)
        for part, rows in zip(found, expected, strict=True):
            assert torch.equal(part, rows)


def test_the_linear_model_ends_where_all_rows_at_once_do_and_has_not_been_there_before():
    recipe = Recipe(strategy="bayes_linear")
    data = toy()
    (in_sequence,) = train_in_sequence(data, [1], [recipe], 5)
    (at_once,) = train_and_score(data, [1], [recipe])
    assert len(in_sequence) == 5
    assert in_sequence[-1] == pytest.approx(at_once, rel=1e-9)
    assert abs(in_sequence[0]["rmse"] / at_once["rmse"] - 1) > 0.01


@pytest.mark.parametrize("posterior", ["gaussian", "radial", "rdp"])
def test_one_slice_is_the_ordinary_run_but_for_the_order_of_rows(posterior):
    recipe = Recipe(
        strategy="rdp_vcl" if posterior == "rdp" else "vcl",
        posterior=posterior,
        steps=40,
        batch_size=54,
        eval_samples=40,
    )
    data = toy()
    (at_once,) = train_in_sequence(data, [2], [recipe], 1)
    (ordinary,) = train_and_score(data, [2], [recipe])
    # Whole batches: only the order in which a batch is summed up differs.
    assert at_once[0] == pytest.approx(ordinary, rel=0.01)


@pytest.mark.parametrize("posterior", ["gaussian", "radial", "rdp"])
def test_a_carried_posterior_learns_from_every_slice(posterior):
    recipe = Recipe(
        strategy="rdp_vcl" if posterior == "rdp" else "vcl",
        posterior=posterior,
        steps=80,
        batch_size=16,
        learning_rate=2e-2,
        eval_samples=40,
    )
    for scores in train_in_sequence(toy(rows=150), [0, 1], [recipe] * 2, 3):
        for before, after in pairwise(score["log_likelihood"] for score in scores):
            assert after > before
