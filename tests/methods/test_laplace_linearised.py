"""The linearised Laplace approximation: exact for a model that is linear in its weights."""

import math

import numpy as np
import pytest
import torch
from failing import refuses
from scenarios import Learner, network
from sklearn.linear_model import BayesianRidge

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods import laplace_linearised
from vcl_radial.methods.laplace_linearised import LaplaceLinearised, maximise_evidence
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP

PRECISION = 6.0


def problem(n=60, d=3):
    torch.manual_seed(0)
    x = torch.randn(n, d)
    return x, x @ torch.randn(d) + 0.4 * torch.randn(n)


def known_noise():
    return Gaussian(1e9, 1e9 / PRECISION, PRECISION)


def linear(weight=None, bias=True, **settings):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1, bias=bias)
    if weight is not None:
        model.weight.data = torch.as_tensor(weight, dtype=torch.float32)[None]
    settings = {"likelihood": known_noise(), "evidence": False, **settings}
    return LaplaceLinearised(model, **settings)


def begin(method, x, y, number=0):
    task = Task(number, len(y), lambda: [Batch(x[:7], y[:7]), Batch(x[7:], y[7:])])
    method.begin_task(task)
    method.network.train()
    for weight in method.network.parameters():
        weight.grad = torch.zeros_like(weight)
    return task


def learn(method, x, y, number=0):
    """To the optimum of its loss."""
    task = begin(method, x, y, number)
    optimizer = torch.optim.LBFGS(
        method.network.parameters(), max_iter=100, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        value = method.loss(Batch(x, y), method.outputs(Batch(x, y)))
        value.backward()
        return value

    optimizer.step(loss)
    method.fit_likelihood()
    method.end_task(task)
    method.network.eval()
    return method


def test_of_a_linear_model_tasks_one_after_another_end_at_the_exact_posterior():
    x, y = problem()
    method = linear(prior_scale=0.5, eval_samples=1_000)
    for number, rows in enumerate(torch.arange(60).tensor_split(3)):
        learn(method, x[rows], y[rows], number)
    with_one = torch.cat([x, torch.ones(60, 1)], 1).double()
    exact = PRECISION * with_one.T @ with_one + torch.eye(4) / 0.5**2
    torch.testing.assert_close(
        method.past.precision_of(method.past.precision), exact, rtol=1e-4, atol=1e-3
    )
    mean = torch.linalg.solve(exact, PRECISION * with_one.T @ y.double())
    weights = torch.cat([w.flatten() for w in method.network.parameters()]).double()
    torch.testing.assert_close(weights, mean, rtol=1e-3, atol=1e-4)
    new = torch.cat([torch.randn(5, 3), torch.ones(5, 1)], 1)
    draws = method.draws(new[:, :3]).squeeze(-1)
    covariance = new.double() @ torch.linalg.inv(exact) @ new.double().T
    torch.testing.assert_close(torch.cov(draws.T).double(), covariance, rtol=0.2, atol=2e-3)


def test_the_evidence_sets_prior_and_noise_as_in_bayesian_ridge_regression():
    x, y = problem()
    ridge = BayesianRidge(
        fit_intercept=False, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=2000
    ).fit(x.numpy(), y.numpy())
    flat = {"noise_shape": 1e-6, "noise_rate": 1e-6}
    method = linear(ridge.coef_, bias=False, likelihood=Gaussian(**flat), evidence=True)
    task = begin(method, x, y)
    method.fit_likelihood()
    method.end_task(task)
    assert float(method.likelihood.noise.mean) == pytest.approx(ridge.alpha_, rel=1e-3)
    (prior,) = method.past.precision.values()
    assert prior.flatten().tolist() == pytest.approx([ridge.lambda_] * 3, rel=1e-3)
    method.network.eval()
    new = 3 * torch.randn(4, 3)
    _, scale = ridge.predict(new.numpy(), return_std=True)
    variance = method.draws(new, samples=1_000).squeeze(-1).var(0) + 1 / ridge.alpha_
    np.testing.assert_allclose(variance.sqrt(), scale, rtol=0.05)


@pytest.mark.parametrize(
    ("values", "norm", "error"), [([0.0, 0.0], 2.0, 3.0), ([1.0, 4.0], 0.0, 3.0), ([1.0], 1.0, 0.0)]
)
def test_the_evidence_of_dead_weights_or_of_a_perfect_fit_is_finite(values, norm, error):
    alpha, beta = maximise_evidence(torch.tensor(values), 10, norm, error)
    assert 0 < alpha < math.inf
    assert 0 < beta < math.inf


@pytest.mark.parametrize("evidence", [True, False])
def test_of_one_weight_the_diagonal_is_the_whole_matrix(evidence):
    x, y = problem(d=1)
    ends = []
    for structure in ("full", "diagonal"):
        torch.manual_seed(0)
        model = torch.nn.Linear(1, 1, bias=False)
        settings = {"likelihood": Gaussian(), "structure": structure, "evidence": evidence}
        method = LaplaceLinearised(model, **settings)
        for number, rows in enumerate(torch.arange(60).tensor_split(2)):
            learn(method, x[rows], y[rows], number)
        draws = [*(method.past.draw(["weight"])["weight"] for _ in range(1_000))]
        noise = method.likelihood.noise.mean
        ends.append((model.weight.detach(), torch.cat(draws).var(0), noise, method.penalty()))
    for full, diagonal in zip(*ends, strict=True):
        torch.testing.assert_close(full, diagonal, rtol=0.15, atol=1e-6)


def test_of_the_last_layer_alone_it_is_the_laplace_approximation_of_a_model_of_its_features():
    torch.manual_seed(0)
    network = MLP(3, 2, hidden=(8,), multi_head=False, posterior=None)
    alone = torch.nn.Linear(8, 2)
    alone.load_state_dict(network.head.output.state_dict())
    x, y = torch.randn(50, 3), torch.arange(50) % 2
    features = network.body[0](x).relu().detach()
    of_network = LaplaceLinearised(network, structure="last-layer")
    of_features = LaplaceLinearised(alone)
    for method, inputs in ((of_network, x), (of_features, features)):
        task = begin(method, inputs, y)
        method.end_task(task)
        method.network.eval()
    one, other = (m.past.precision for m in (of_network, of_features))
    torch.testing.assert_close([*one.values()], [*other.values()])
    assert {name.split(".")[0] for name in of_network.past.centre} == {"head"}
    draws = [m.draws(a, samples=5, seed=1) for m, a in ((of_network, x), (of_features, features))]
    torch.testing.assert_close(*draws)


@pytest.mark.parametrize("structure", ["full", "diagonal", "last-layer"])
def test_predictions_are_less_certain_where_no_data_were(structure):
    torch.manual_seed(0)
    model = MLP(3, 1, hidden=(20,), multi_head=False, posterior=None)
    method = LaplaceLinearised(model, likelihood=Gaussian(), structure=structure)
    x, y = problem()
    task = begin(method, x, y)
    method.fit_likelihood()
    method.end_task(task)
    model.eval()
    near, far = (method.draws(at, samples=100).var(0).median() for at in (x, 20 * x))
    assert far > 10 * near


def test_in_training_it_sees_its_weights_alone():
    learner = Learner("laplace_linearised", network(None), evidence=False).train(0)
    x = learner.points(0).x
    learner.network.train()
    assert torch.equal(learner.method.output(x, 0), learner.network(x, 0))
    learner.network.eval()
    assert not torch.equal(learner.method.output(x, 0), learner.network(x, 0))


def test_a_network_that_has_no_whole_matrix_is_refused_with_the_fix(monkeypatch):
    layers = torch.nn.Linear(64, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 10)
    net = torch.nn.Sequential(*layers)
    with refuses("'1.bias'"):
        LaplaceLinearised(net)
    LaplaceLinearised(net, structure="diagonal")
    monkeypatch.setattr(laplace_linearised, "LARGEST", 100)
    with refuses("options.structure", "101"):
        LaplaceLinearised(torch.nn.Linear(100, 1))


@pytest.mark.parametrize("structure", ["last-layer", "diagonal"])
def test_the_evidence_sets_the_first_prior_of_the_heads_to_come(structure):
    settings = {"structure": structure, "evidence": True}
    learner = Learner(LaplaceLinearised, network(None), **settings).train(0)
    method = learner.method
    assert method.prior_precision != 1.0
    again = Learner(LaplaceLinearised, network(None), **settings)
    again.adapt(0)
    again.method.load_state_dict(method.state_dict())
    assert again.method.prior_precision == method.prior_precision
    learner.train(1)
    head = {n: p for n, p in learner.network.named_parameters() if ".heads.1." in n}
    added = diagonal_fisher(learner.network, head, method.points(), "predictive", method.likelihood)
    of_head = {name: method.past.precision[name] for name in head}
    if structure == "last-layer":
        dense = method.past.precision_of(of_head).diagonal()
        curvature = torch.cat([added[name].flatten() for name in of_head])
    else:
        dense = torch.cat([of_head[name].flatten() for name in head])
        curvature = torch.cat([added[name].flatten() for name in head])
    first = torch.full_like(dense, method.prior_precision)
    torch.testing.assert_close(dense - curvature.to(dense), first, rtol=1e-3, atol=1e-3)


def test_heads_that_come_are_counted_in_the_size_of_the_matrix():
    wide = MLP(4, 30, hidden=(200,), multi_head=True, posterior=None)
    method = LaplaceLinearised(wide, structure="last-layer")
    with refuses("options.structure", "6,030"):
        method.begin_task(Task(0, 3, list))
