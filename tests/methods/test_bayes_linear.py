"""Bayesian linear regression: its posterior is the exact one, however the points come."""

import numpy as np
import pytest
import torch
from failing import refuses
from scipy import stats
from sklearn.linear_model import Ridge

from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Bernoulli, Gaussian
from vcl_radial.methods import fixed_features
from vcl_radial.methods.bayes_linear import BayesLinear, NormalGamma, Sums, prior_precision
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP

PARTS = ("mean", "precision", "shape", "rate")


def problem(n=60, d=4):
    torch.manual_seed(0)
    x = torch.randn(n, d).double()
    return x, x @ torch.randn(d).double() + 0.5 * torch.randn(n).double()


def updated(prior, x, y, batch=25):
    return prior.update(lambda: zip(x.split(batch), y[:, None].split(batch), strict=True))


def method(d=4, hidden=(), likelihood=None, **settings):
    torch.manual_seed(0)
    network = MLP(d, 1, hidden=hidden, multi_head=False, posterior=None)
    return BayesLinear(network, likelihood=likelihood or Gaussian(1.0, 0.1), **settings)


def posterior(learner):
    """Of the one head."""
    return learner.network.head.output.posterior


def learn(learner, x, y, *parts, batch=25):
    """Learn rows as one task after another."""
    for number, rows in enumerate(parts):
        data = [Batch(*b) for b in zip(x[rows].split(batch), y[rows].split(batch), strict=True)]
        task = Task(number, len(y[rows]), lambda data=data: data)
        learner.begin_task(task)
        learner.fit_likelihood()
        learner.end_task(task)
    learner.network.eval()
    return learner


@pytest.mark.parametrize("batch", [7, 60])
def test_the_predictive_is_that_of_bayes_rule(batch):
    """p(y_new | D) = p(D, y_new) / p(D), with the evidence as a multivariate Student-t."""
    x, y = problem(n=9, d=2)
    new = torch.tensor([[0.7, -1.2]], dtype=torch.float64)
    prior = NormalGamma.prior(2, 1.5, 2.0, 0.8)

    def log_evidence(x, y):
        spread = torch.eye(len(y)).double() + 1.5**2 * x @ x.T
        t = stats.multivariate_t(np.zeros(len(y)), (0.8 / 2.0) * spread.numpy(), df=4.0)
        return t.logpdf(y.numpy())

    location, scale, degrees = updated(prior, x, y, batch).predictive(new)
    for target in (-2.0, 0.3, 1.0):
        log_density = stats.t.logpdf(target, degrees, location.item(), scale.item())
        together = log_evidence(
            torch.cat([x, new]), torch.cat([y, torch.tensor([target], dtype=torch.float64)])
        )
        assert log_density == pytest.approx(together - log_evidence(x, y), abs=1e-9)


def test_the_location_is_that_of_ridge_regression():
    x, y = problem()
    location, _, _ = updated(NormalGamma.prior(4, 0.3, 1.0, 0.1), x, y).predictive(x)
    ridge = Ridge(alpha=0.3**-2, fit_intercept=False).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(location[:, 0], ridge.predict(x.numpy()), rtol=1e-9)


def test_no_points_change_nothing_and_points_seen_twice_count_twice():
    x, y = problem()
    once = updated(NormalGamma.prior(4, 0.3, 1.0, 0.1), x, y)
    again = updated(once, x[:0], y[:0])
    for part in PARTS:
        torch.testing.assert_close(getattr(again, part), getattr(once, part))
    twice, doubled = (
        updated(once, x, y),
        updated(NormalGamma.prior(4, 0.3, 1.0, 0.1), x.repeat(2, 1), y.repeat(2)),
    )
    for part in PARTS:
        torch.testing.assert_close(getattr(twice, part), getattr(doubled, part))


@pytest.mark.parametrize("features", ["inputs", "body"])
def test_tasks_one_after_another_in_any_order_end_where_all_points_at_once_do(features):
    x, y = problem()
    rows = torch.randperm(60).tensor_split(5)
    make = {"features": features, "hidden": (6,)}
    at_once = learn(method(**make), x.float(), y.float(), torch.arange(60))
    for order in (rows, rows[::-1]):
        in_parts = learn(method(**make), x.float(), y.float(), *order)
        for part in PARTS:
            ends = (getattr(posterior(learner), part) for learner in (in_parts, at_once))
            torch.testing.assert_close(*ends, rtol=1e-8, atol=1e-8)
    assert not torch.equal(posterior(at_once).mean, posterior(method(**make)).mean)


def test_features_are_inputs_and_a_1_or_what_the_body_gives_and_a_1():
    x, y = problem()
    linear = learn(method(), x.float(), y.float(), torch.arange(60))
    with_one = torch.cat([x.float().double(), torch.ones(60, 1)], 1)
    exact = updated(NormalGamma.prior(5, 1.0, 1.0, 0.1), with_one, y.float().double())
    torch.testing.assert_close(posterior(linear).mean, exact.mean)
    body = method(hidden=(6,), features="body")
    units = MLP(4, 1, hidden=(6,), multi_head=False, posterior=None)
    units.body.load_state_dict(body.network.features.body.body.state_dict())
    units.head.output.weight.data, units.head.output.bias.data = torch.eye(6), torch.zeros(6)
    torch.testing.assert_close(body.network.phi(x.float())[:, :-1], units(x.float()))


def test_draws_are_of_the_posterior():
    """Their mean, covariance and the spread that an unknown noise gives are those of Student-t."""
    x, y = problem()
    learner = learn(method(), x.float(), y.float(), torch.arange(60))
    new = torch.randn(3, 4)
    draws = learner.draws(new, samples=4_000).squeeze(-1)
    q, phi = posterior(learner), learner.network.phi(new).double()
    torch.testing.assert_close(draws.mean(0), (phi @ q.mean)[:, 0], rtol=0, atol=0.02)
    covariance = phi @ torch.linalg.inv(q.precision) @ phi.T * q.rate / (q.shape - 1)
    torch.testing.assert_close(torch.cov(draws.T), covariance, rtol=0.1, atol=1e-4)
    assert torch.equal(draws[:5], learner.draws(new, samples=5).squeeze(-1))


def test_its_noise_is_known_to_the_likelihood():
    x, y = problem()
    learner = learn(method(), x.float(), y.float(), torch.arange(60))
    q = posterior(learner)
    torch.testing.assert_close(learner.likelihood.noise.mean.double(), q.shape / q.rate)


def test_a_task_whose_features_are_too_many_to_hold_is_learned_as_another(monkeypatch):
    x, y = problem()
    learners, counts = [], []
    for held in (fixed_features.HELD, 0):
        monkeypatch.setattr(fixed_features, "HELD", held)
        learner, seen = method(features="random-relu", units=7, evidence=True), []
        learner.network.features.register_forward_hook(lambda _, x, phi, n=seen: n.append(len(phi)))
        learners.append(learn(learner, x.float(), y.float(), torch.arange(60)))
        counts.append(sum(seen))
    first, second = map(posterior, learners)
    assert counts[0] == 60 < counts[1]
    for part in PARTS:
        assert torch.equal(getattr(first, part), getattr(second, part))


def test_its_state_is_all_of_it(tmp_path):
    x, y = problem()
    rows = torch.arange(60).tensor_split(3)
    learner = learn(method(), x.float(), y.float(), *rows[:2])
    torch.save(learner.state_dict(), tmp_path / "state")
    again = method()
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    for learned in (learner, again):
        learn(learned, x.float(), y.float(), rows[2])
    for part in PARTS:
        assert torch.equal(getattr(posterior(learner), part), getattr(posterior(again), part))
    predicted = [learned.predict(x.float()) for learned in (learner, again)]
    assert torch.equal(predicted[0].scale, predicted[1].scale)


@pytest.mark.parametrize(
    ("network", "settings", "named"),
    [
        (MLP(4, 1, multi_head=False), {}, "posterior"),
        (torch.nn.Conv2d(1, 1, 3), {}, "options.features"),
        (torch.nn.Linear(4, 1), {"features": "body"}, "options.features"),
        (torch.nn.Linear(4, 1), {"features": "random-relu", "of": "tangent"}, "options.of"),
        (torch.nn.Linear(4, 1), {"prior_scale": 0.0}, "prior_scale"),
    ],
)
def test_what_it_cannot_learn_is_refused(network, settings, named):
    with pytest.raises(UserError, match=named):
        BayesLinear(network, likelihood=Gaussian(), **settings)


def test_inputs_of_another_size_are_named():
    learner = method()
    with refuses("4 features", "[5]"):
        learner.network(torch.zeros(2, 5))


def test_it_serves_numbers_and_classes():
    with refuses("BayesLinear", "bernoulli"):
        BayesLinear(torch.nn.Linear(4, 1), likelihood=Bernoulli())


# Classes


def classes(n=60, d=4, count=3):
    torch.manual_seed(1)
    y = torch.arange(n) % count
    return torch.randn(n, d) + 1.5 * torch.eye(count, d)[y], y


def of_classes(d=4, count=3, multi_head=False, **settings):
    torch.manual_seed(0)
    network = MLP(d, count, hidden=(6,), multi_head=multi_head, posterior=None)
    return BayesLinear(network, **settings)


def test_of_classes_the_mean_is_that_of_ridge_regression_on_unit_vectors():
    x, y = classes()
    q = posterior(learn(of_classes(prior_scale=0.5), x, y, *torch.randperm(60).tensor_split(4)))
    with_one = torch.cat([x, torch.ones(60, 1)], 1).double().numpy()
    ridge = Ridge(alpha=4.0, fit_intercept=False).fit(with_one, np.eye(3)[y])
    np.testing.assert_allclose(q.mean.T, ridge.coef_, rtol=1e-7, atol=1e-9)


def test_a_class_that_has_not_come_yet_is_unlikely():
    x, y = classes(300)
    early = learn(of_classes(), x, y, (y < 2).nonzero()[:, 0])
    assert (early.predict(x).argmax(1) < 2).float().mean() > 0.95
    later = learn(early, x, y, (y == 2).nonzero()[:, 0])
    assert (later.predict(x).argmax(1) == y).float().mean() > 0.7


def test_a_head_learns_the_points_of_its_task_alone():
    x, y = classes()
    learner = of_classes(multi_head=True)
    first, second = (torch.arange(30), torch.arange(30, 60))
    for label, rows in enumerate((first, second)):
        data = [Batch(x[rows], y[rows], label)]
        task = Task(label, 30, lambda data=data: data, heads=[label])
        learner.begin_task(task)
        learner.end_task(task)
    learner.network.eval()
    alone = learn(of_classes(), x, y, second)
    torch.testing.assert_close(learner.predict(x, 1), alone.predict(x))
    mixed = torch.arange(60) % 2
    together = learner.predict(x, mixed)
    torch.testing.assert_close(together[1::2], learner.predict(x[1::2], 1))


def test_a_point_is_predicted_by_the_posterior_without_it():
    """m / s of every point, by learning all the others."""
    x, y = classes(20)
    seen = []
    learner = of_classes()
    learner.network.head.output.sharpness.observe = lambda *points: seen.append(points)
    learn(learner, x, y, torch.arange(20))
    ((outputs, labels),) = seen
    assert torch.equal(labels, y)
    for i in range(20):
        others = torch.tensor([k for k in range(20) if k != i])
        q = posterior(learn(of_classes(), x, y, others))
        phi = learner.network.phi(x[i : i + 1])
        location, scale, _ = q.predictive(phi)
        spread = scale.square() * q.shape / q.rate
        torch.testing.assert_close(outputs[i], (location / spread)[0])


def test_probabilities_are_as_sharp_as_makes_new_points_most_likely():
    x, y = classes(4_000, count=4)
    learner = learn(of_classes(count=4), x[:2_000], y[:2_000], torch.arange(2_000))
    log_p = learner.predict(x[2_000:])
    losses = {
        factor: torch.nn.functional.cross_entropy(factor * log_p, y[2_000:])
        for factor in (0.6, 1.0, 1.6)
    }
    assert min(losses, key=losses.get) == 1.0


def test_the_first_prior_is_the_one_that_makes_the_first_targets_most_likely():
    x, y = problem(n=30)
    prior = NormalGamma.prior(4, 1.0, 2.0, 0.8)

    def log_evidence(alpha):
        spread = torch.eye(30).double() + x @ x.T / alpha
        t = stats.multivariate_t(np.zeros(30), (0.8 / 2.0) * spread.numpy(), df=4.0)
        return t.logpdf(y.numpy())

    chosen = prior_precision(Sums.over([(x, y[:, None])], prior.mean), prior)
    around = [log_evidence(chosen * factor) for factor in (0.8, 1.0, 1.25)]
    assert max(around) == around[1]
    learner = learn(method(evidence=True), x.float(), y.float(), torch.arange(30))
    with_one = torch.cat([x.float().double(), torch.ones(30, 1)], 1)
    prior = NormalGamma.prior(5, 1.0, 1.0, 0.1)
    targets = y.float().double()[:, None]
    alpha = prior_precision(Sums.over([(with_one, targets)], prior.mean), prior)
    gram = with_one.T @ with_one
    torch.testing.assert_close(posterior(learner).precision, gram + alpha * torch.eye(5))
    again = learn(learner, x.float(), y.float(), torch.arange(30))
    torch.testing.assert_close(posterior(again).precision, 2 * gram + alpha * torch.eye(5))


@pytest.mark.parametrize(
    "settings",
    [
        {"features": "random-relu", "units": 30, "evidence": True},
        {"features": "tangent", "directions": 5, "evidence": True},
    ],
)
def test_features_are_fitted_to_the_first_task_and_stay(settings, tmp_path):
    x, y = classes()
    learner = learn(of_classes(**settings), x, y, torch.arange(30))
    phi = learner.network.phi(x)
    learn(learner, x, y, torch.arange(30, 60))
    assert torch.equal(learner.network.phi(x), phi)
    torch.save(learner.state_dict(), tmp_path / "state")
    again = of_classes(**settings)
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    again.network.eval()
    assert torch.equal(again.predict(x), learner.predict(x))


def test_points_whose_targets_are_all_0_are_kept():
    x = torch.randn(60, 4)
    y = torch.cat([torch.zeros(50), torch.randn(10)])
    learner = method(evidence=True)
    precisions = []
    for rows in (torch.arange(50), torch.arange(50, 60)):
        learn(learner, x, y, rows)
        precisions.append(posterior(learner).precision)
    phi = torch.cat([x[50:], torch.ones(10, 1)], 1).to(precisions[0])
    torch.testing.assert_close(precisions[1], precisions[0] + phi.T @ phi)
