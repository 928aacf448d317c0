"""Bayesian discriminant analysis: its posterior is the exact one, however the points come."""

import dataclasses

import numpy as np
import pytest
import torch
from failing import refuses
from scipy.special import multigammaln
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.bayes_discriminant import KAPPA, BayesDiscriminant, Discriminant
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP

PARTS = ("counts", "sums", "squares")


def problem(n=60, d=4, classes=3):
    torch.manual_seed(0)
    y = torch.arange(n) % classes
    shape = torch.randn(d, d).double() / 2 + torch.eye(d)
    return torch.randn(n, d).double() @ shape + 1.5 * torch.eye(classes, d)[y], y


def start(d=4, classes=3, ridge=0.7):
    torch.manual_seed(2)
    empty = Discriminant.empty(d, classes)
    return dataclasses.replace(empty, centre=torch.randn(d).double(), ridge=empty.ridge * ridge)


def updated(before, x, y, batch=25):
    return before.update(lambda: zip(x.split(batch), y.split(batch), strict=True))


def method(d=4, classes=3, **settings):
    torch.manual_seed(0)
    network = MLP(d, classes, hidden=(6,), multi_head=False, posterior=None)
    return BayesDiscriminant(network, **settings)


def learn(learner, x, y, *parts):
    for number, rows in enumerate(parts):
        data = [Batch(x[rows].float(), y[rows])]
        task = Task(number, len(rows), lambda data=data: data)
        learner.begin_task(task)
        learner.end_task(task)
    learner.network.eval()
    return learner


def log_evidence(learned):
    """Log p(points, classes) in nats, from the densities of Murphy 2012, section 4.6.3.8."""
    d, n = len(learned.centre), float(learned.counts.sum())
    nu_0, nu = d + 2, n + d + 2
    psi = learned.scatter + learned.ridge * torch.eye(d)
    of_points = (
        multigammaln(nu / 2, d)
        - multigammaln(nu_0 / 2, d)
        + nu_0 / 2 * d * np.log(float(learned.ridge))
        - nu / 2 * float(torch.logdet(psi))
        + d / 2 * float((KAPPA / learned.kappas).log().sum())
        - n * d / 2 * np.log(np.pi)
    )
    ones = torch.ones_like(learned.counts)
    of_classes = torch.lgamma(ones.sum()) - torch.lgamma(ones.sum() + n)
    of_classes = of_classes + torch.lgamma(ones + learned.counts).sum()
    return of_points + float(of_classes)


@pytest.mark.parametrize("counts", [9, 2, 0])
def test_the_predictive_is_that_of_bayes_rule(counts):
    """p(x, c | D) = p(D, x, c) / p(D), for classes that have points and one that has none."""
    x, y = problem(9)
    learned = updated(start(), x[:counts], y[:counts])
    new = torch.tensor([[0.7, -1.2, 0.1, 0.4]]).double()
    together = [
        log_evidence(updated(learned, new, torch.tensor([c]))) - log_evidence(learned)
        for c in range(3)
    ]
    shown = learned.log_joint(new)[0]
    torch.testing.assert_close(shown - shown[0], torch.tensor(together) - together[0])


def test_a_point_is_predicted_by_all_others():
    x, y = problem(20)
    learned = updated(start(), x, y)
    shown = learned.without_itself(x, y)
    for i in range(20):
        others = torch.tensor([k for k in range(20) if k != i])
        alone = updated(start(), x[others], y[others]).log_joint(x[i : i + 1])[0]
        torch.testing.assert_close(shown[i] - shown[i, 0], alone - alone[0])


def test_of_many_points_it_is_linear_discriminant_analysis():
    x, y = problem(6_000)
    learned = updated(start(ridge=1e-6), x, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), y.numpy())
    log_p = learned.log_joint(x).log_softmax(1)
    np.testing.assert_allclose(log_p.exp(), lda.predict_proba(x.numpy()), atol=5e-3)


def test_tasks_in_any_order_end_where_all_points_at_once_do():
    x, y = problem()
    rows = torch.randperm(60).tensor_split(5)
    at_once = updated(start(), x, y, batch=60)
    for order in (rows, rows[::-1]):
        learned = start()
        for part in order:
            learned = updated(learned, x[part], y[part], batch=5)
        for name in PARTS:
            torch.testing.assert_close(getattr(learned, name), getattr(at_once, name))
        torch.testing.assert_close(learned.log_joint(x), at_once.log_joint(x))


def test_no_points_change_nothing_and_points_seen_twice_count_twice():
    x, y = problem()
    once = updated(start(), x, y)
    again = updated(once, x[:0], y[:0])
    twice, doubled = updated(once, x, y), updated(start(), x.repeat(2, 1), y.repeat(2))
    for name in PARTS:
        assert torch.equal(getattr(again, name), getattr(once, name))
        torch.testing.assert_close(getattr(twice, name), getattr(doubled, name))


def test_the_ridge_is_the_one_that_makes_the_first_points_most_likely():
    x, y = problem()
    learner = learn(method(), x, y, torch.arange(60))
    learned = learner.network.head.output.posterior
    torch.testing.assert_close(learned.centre, x.mean(0), rtol=1e-5, atol=1e-6)
    around = [
        log_evidence(dataclasses.replace(learned, ridge=learned.ridge * factor))
        for factor in (0.8, 1.0, 1.25)
    ]
    assert max(around) == around[1]
    ridge = learned.ridge
    learn(learner, x, y, torch.arange(30))
    assert learner.network.head.output.posterior.ridge == ridge


def test_it_learns_classes_in_sequence(tmp_path):
    x, y = problem(600)
    parts = [(y == c).nonzero()[:, 0] for c in range(3)]
    learner = learn(method(), x, y, *parts)
    at_once = learn(method(), x, y, torch.arange(600))
    new, _ = problem(300)
    answers = learner.predict(new.float()).argmax(1)
    assert (answers == at_once.predict(new.float()).argmax(1)).float().mean() > 0.97
    torch.save(learner.state_dict(), tmp_path / "state")
    again = method()
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    again.network.eval()
    assert torch.equal(again.predict(new.float()), learner.predict(new.float()))


def test_it_serves_classes_alone():
    with refuses("BayesDiscriminant", "gaussian"):
        BayesDiscriminant(torch.nn.Linear(4, 1), likelihood=Gaussian())


def test_a_head_without_a_point_stays_as_it_is():
    torch.manual_seed(0)
    network = MLP(4, 3, hidden=(6,), multi_head=True, posterior=None)
    learner = BayesDiscriminant(network)
    x, y = problem()
    learner.begin_task(task := Task(0, len(y), lambda: [Batch(x.float(), y, 0)], heads=(0, 1)))
    learner.end_task(task)
    assert learner.head(0).posterior.counts.sum() == len(y)
    assert not learner.head(1).posterior.counts.any()
