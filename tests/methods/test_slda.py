"""Streaming discriminant analysis: points in batches are the points one by one."""

import numpy as np
import pytest
import torch
from failing import refuses
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch.distributions import MultivariateNormal

from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.slda import SLDA, Stream
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP


def problem(n=60, d=4, classes=3):
    torch.manual_seed(0)
    y = torch.randint(classes, (n,))
    shape = torch.randn(d, d).double() / 2 + torch.eye(d)
    return torch.randn(n, d).double() @ shape + 1.5 * torch.eye(classes, d)[y] + 0.5, y


def updated(before, x, y, batch=25):
    return before.update(lambda: zip(x.split(batch), y.split(batch), strict=True))


def one_by_one(x, y, classes=3):
    """Mean, covariance and number of each class after the recursion of the paper."""
    means, counts = torch.zeros(classes, x.shape[1]).double(), torch.zeros(classes)
    sigma = torch.zeros(x.shape[1], x.shape[1]).double()
    for t, (point, label) in enumerate(zip(x, y, strict=True)):
        away = point - means[label]
        sigma = (t * sigma + t / (t + 1) * torch.outer(away, away)) / (t + 1)
        means[label] = (counts[label] * means[label] + point) / (counts[label] + 1)
        counts[label] += 1
    return means, sigma


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_batches_are_the_points_one_by_one(batch):
    x, y = problem()
    learned = updated(updated(Stream.empty(4, 3, 1e-4), x[:31], y[:31], batch), x[31:], y[31:])
    means, sigma = one_by_one(x, y)
    torch.testing.assert_close(learned.means, means)
    torch.testing.assert_close(learned.scatter / 60, sigma)
    assert torch.equal(learned.counts, torch.bincount(y).double())


def test_the_scores_are_gaussian_log_densities_of_equally_likely_classes():
    x, y = problem()
    learned = updated(Stream.empty(4, 3, 0.1), x, y)
    covariance = 0.9 * learned.scatter / 60 + 0.1 * torch.eye(4)
    densities = MultivariateNormal(learned.means, covariance).log_prob(x[:, None])
    shown = learned.scores(x)
    torch.testing.assert_close(shown.log_softmax(1), densities.log_softmax(1))


def test_of_many_points_it_is_linear_discriminant_analysis():
    x, y = problem(20_000)
    log_p = updated(Stream.empty(4, 3, 0.0), x, y, 1000).scores(x).log_softmax(1)
    lda = LinearDiscriminantAnalysis(solver="lsqr", priors=[1 / 3] * 3).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(log_p.exp(), lda.predict_proba(x.numpy()), atol=5e-3)


def test_with_full_shrinkage_it_is_the_nearest_mean():
    x, y = problem()
    learned = updated(Stream.empty(4, 3, 1.0), x, y)
    nearest = torch.cdist(x, learned.means).argmin(1)
    assert torch.equal(learned.scores(x).argmax(1), nearest)


def method(**settings):
    torch.manual_seed(0)
    return SLDA(MLP(4, 3, hidden=(6,), multi_head=False, posterior=None), **settings)


def learn(learner, x, y, *parts):
    for number, rows in enumerate(parts):
        data = [Batch(x[rows].float(), y[rows])]
        task = Task(number, len(rows), lambda data=data: data)
        learner.begin_task(task)
        learner.end_task(task)
    learner.network.eval()
    return learner


def test_it_learns_classes_in_sequence(tmp_path):
    x, y = problem(900)
    parts = [(y == c).nonzero()[:, 0] for c in range(3)]
    learner = learn(method(), x, y, *parts)
    at_once = learn(method(), x, y, torch.arange(900))
    new = problem(1500)[0][900:].float()
    classes = learner.predict(new).argmax(1)
    assert (classes == at_once.predict(new).argmax(1)).float().mean() > 0.97
    torch.save(learner.state_dict(), tmp_path / "state")
    again = method()
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    again.network.eval()
    assert torch.equal(again.predict(new), learner.predict(new))


def test_it_serves_classes_alone():
    with refuses("SLDA", "gaussian"):
        SLDA(torch.nn.Linear(4, 1), likelihood=Gaussian())
