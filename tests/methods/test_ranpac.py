"""RanPAC: a ridge regression on the points of all tasks, with the ridge that the last one chose."""

import dataclasses

import numpy as np
import pytest
import torch
from failing import refuses
from sklearn import linear_model
from torch.nn.functional import one_hot

from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.ranpac import POWERS, RanPAC, Ridge
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP


def problem(n=60, d=8, classes=3, noise=2.0):
    torch.manual_seed(0)
    y = torch.randint(classes, (n,))
    return noise * torch.randn(n, d).double() + torch.eye(classes, d)[y] + 0.5, y


def method(d=8, **settings):
    torch.manual_seed(0)
    return RanPAC(MLP(d, 3, hidden=(6,), multi_head=False, posterior=None), **settings)


def learn(learner, x, y, *parts, batch=1000):
    for number, rows in enumerate(parts):
        data = [Batch(*b) for b in zip(x[rows].split(batch), y[rows].split(batch), strict=True)]
        task = Task(number, len(rows), lambda data=data: data)
        learner.begin_task(task)
        learner.end_task(task)
    learner.network.eval()
    return learner


def regression(learner):
    return learner.network.head.output.posterior


def by_scikit_learn(x, y, ridge):
    fitted = linear_model.Ridge(ridge, fit_intercept=False).fit(x.numpy(), one_hot(y).numpy())
    return torch.as_tensor(fitted.coef_.T)


def test_it_is_ridge_regression_on_all_points_with_the_ridge_of_the_last_task():
    x, y = (part.float() if part.is_floating_point() else part for part in problem(90))
    learner = learn(method(), x, y, torch.arange(50), torch.arange(50, 90))
    learned = regression(learner)
    torch.testing.assert_close(
        learned.weights, by_scikit_learn(x, y, float(learned.ridge)).double()
    )
    last = regression(learn(method(), x, y, torch.arange(50, 90)))
    assert learned.ridge == last.ridge


@pytest.mark.parametrize("noise", [0.01, 2.0, 30.0])
def test_the_ridge_has_the_least_error_on_every_fifth_point(noise):
    x, y = problem(40, noise=noise)
    x = x.float()
    held = np.arange(40) % 5 == 4
    errors = {
        10.0**power: (
            (x[held] @ by_scikit_learn(x[~held], y[~held], 10.0**power) - one_hot(y)[held])
            .square()
            .mean()
        )
        for power in POWERS
    }
    assert float(regression(learn(method(), x, y, torch.arange(40))).ridge) == min(
        errors, key=errors.get
    )


def test_a_task_without_a_held_out_point_keeps_the_ridge():
    x, y = problem(64)
    learner = learn(method(), x.float(), y, torch.arange(60))
    ridge = regression(learner).ridge
    learn(learner, x.float(), y, torch.arange(60, 64))
    assert regression(learner).ridge == ridge
    assert regression(learner).cross.sum() == pytest.approx(float(x.float().sum()), rel=1e-5)


def test_a_point_is_predicted_by_all_others():
    x, y = problem(20)
    targets = one_hot(y).double()
    shown = Ridge.fit(x.T @ x, x.T @ targets, torch.tensor(0.3)).without_itself(x, targets)
    for i in range(20):
        others = torch.tensor([k for k in range(20) if k != i])
        x_, y_ = x[others], targets[others]
        alone = Ridge.fit(x_.T @ x_, x_.T @ y_, torch.tensor(0.3))
        torch.testing.assert_close(shown[i], x[i] @ alone.weights)


def test_points_that_span_few_directions_are_learned():
    """The smallest ridges drown in the rounding of G, which has no inverse."""
    x, y = problem(60, noise=1e3)
    x[:, 4:] = x[:, :4]
    assert regression(learn(method(), x.float(), y, torch.arange(60))).weights.isfinite().all()


def test_it_learns_classes_in_sequence(tmp_path):
    x, y = problem(900, noise=0.3)
    x = x.float()
    parts = [(y == c).nonzero()[:, 0] for c in range(3)]
    learner = learn(method(), x, y, *parts)
    at_once = learn(method(), x, y, torch.arange(900))
    for part in ("squared", "cross"):
        torch.testing.assert_close(*(getattr(regression(one), part) for one in (learner, at_once)))
    assert (learner.predict(x).argmax(1) == y).float().mean() > 0.9
    torch.save(learner.state_dict(), tmp_path / "state")
    again = method()
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    again.network.eval()
    assert torch.equal(again.predict(x), learner.predict(x))


def test_the_regression_is_all_that_is_carried():
    names = {field.name for field in dataclasses.fields(Ridge)} | {"sharpness.sums"}
    assert set(method().network.head.output.state_dict()) == names


def test_it_serves_classes_alone():
    with refuses("RanPAC", "gaussian"):
        RanPAC(torch.nn.Linear(4, 1), likelihood=Gaussian())
