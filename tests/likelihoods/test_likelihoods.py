"""Likelihoods against their densities, and against each other where they are the same."""

import math

import pytest
import torch
from failing import refuses
from torch.func import functional_call, grad, hessian, jacrev, vmap

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.likelihoods import Bernoulli, Categorical, Gaussian, OneHot
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.laplace_kronecker import LaplaceKronecker
from vcl_radial.methods.lwf import LwF
from vcl_radial.methods.tasks import Batch, Task

BOTH = pytest.mark.parametrize(
    ("likelihood", "outputs"), [(Categorical(), 3), (Bernoulli(), 1)], ids=["classes", "yes or no"]
)

ALL = pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [(Categorical(), 3), (Bernoulli(), 1), (OneHot(), 3), (OneHot(0.7, 4.0), 3)],
    ids=["classes", "yes or no", "labels", "labels that are scaled"],
)


def drawn(outputs, *shape):
    generator = torch.Generator().manual_seed(0)
    f = 2 * torch.randn(*shape, outputs, generator=generator, dtype=torch.float64)
    return f, torch.arange(shape[-1]) % max(outputs, 2)


@ALL
def test_the_predictive_is_the_mean_of_the_draws_probabilities(likelihood, outputs):
    f, _ = drawn(outputs, 5, 6)
    together = likelihood.predictive(f).exp()
    torch.testing.assert_close(together.sum(-1), torch.ones(6, dtype=torch.float64))
    apart = torch.stack([likelihood.predictive(draw[None]).exp() for draw in f])
    torch.testing.assert_close(together, apart.mean(0))


@BOTH
def test_the_mean_output_predicts_what_the_draws_do(likelihood, outputs):
    f, _ = drawn(outputs, 5, 6)
    together = likelihood.predictive(f).exp()
    again = likelihood.predictive(likelihood.mean_output(f)[None]).exp()
    torch.testing.assert_close(together, again)


@ALL
def test_a_prediction_is_the_predictive_with_the_spread_of_the_more_probable_answer(
    likelihood, outputs
):
    f, _ = drawn(outputs, 5, 6)
    log_probs, sampling = likelihood.prediction(f)
    torch.testing.assert_close(log_probs, likelihood.predictive(f))
    apart = torch.stack([likelihood.predictive(draw[None]).exp() for draw in f])
    expected = 100 * apart[:, torch.arange(6), log_probs.argmax(-1)].std(0)
    torch.testing.assert_close(sampling, expected)
    assert likelihood.prediction(f[:1])[1].tolist() == [0] * 6


@BOTH
def test_the_nll_is_minus_the_log_of_the_targets_probability(likelihood, outputs):
    f, y = drawn(outputs, 4, 6)
    of_draws = [likelihood.predictive(draw[None])[torch.arange(6), y] for draw in f]
    torch.testing.assert_close(likelihood.nll(f, y), -torch.stack(of_draws).mean())
    torch.testing.assert_close(likelihood.nll(f[0], y), -of_draws[0].mean())


@ALL
def test_residual_and_hessian_root_are_the_derivatives_of_the_nll(likelihood, outputs):
    f, y = drawn(outputs, 6)

    def nll(one, target):
        return likelihood.nll(one[None], target[None])

    torch.testing.assert_close(likelihood.residual(f, y), vmap(grad(nll))(f, y))
    root = torch.stack(likelihood.hessian_root(f, y), dim=-1)
    torch.testing.assert_close(root @ root.mT, vmap(hessian(nll))(f, y))


@pytest.mark.parametrize(("variance", "scale"), [(0.1, 1.0), (0.7, 4.0)])
def test_labels_with_noise_have_its_density_and_their_classes_follow_by_bayes_rule(variance, scale):
    f, y = drawn(3, 6)
    likelihood, labels = OneHot(variance, scale), torch.eye(3, dtype=torch.float64)
    noise = torch.distributions.Normal(f / scale, variance**0.5)
    of_labels = torch.stack([noise.log_prob(label).sum(-1) for label in labels], dim=-1)
    torch.testing.assert_close(likelihood.nll(f, y), -of_labels[torch.arange(6), y].mean())
    torch.testing.assert_close(likelihood.predictive(f[None]), of_labels.log_softmax(-1))
    torch.testing.assert_close(likelihood.logits(f).log_softmax(-1), of_labels.log_softmax(-1))


def test_kronecker_laplace_of_labels_with_noise_ends_where_all_tasks_together_do():
    """A layer's posterior is exact then: what is carried is the Gram matrix of its inputs."""
    torch.manual_seed(0)
    variance, scale, precision = 0.5, 2.0, 3.0
    inputs = torch.randn(3, 20, 4).double()
    tasks = [Batch(x, torch.arange(20) % 3) for x in inputs]
    network = torch.nn.Linear(4, 3, bias=False).double()
    method = LaplaceKronecker(
        network,
        likelihood=OneHot(variance, scale),
        prior_precision=precision,
        hessian_weight=1.0,
    )
    for number, batch in enumerate(tasks):
        method.begin_task(Task(number, len(batch.y), lambda batch=batch: [batch]))
        optimizer = torch.optim.LBFGS(network.parameters(), max_iter=200, tolerance_grad=1e-12)

        def loss(batch=batch, optimizer=optimizer):
            optimizer.zero_grad()
            value = method.loss(batch, method.outputs(batch))
            value.backward()
            return value

        optimizer.step(loss)
        method.end_task(method.task)
    X, Y = inputs.flatten(0, 1), torch.cat([batch.y for batch in tasks])
    gram = X.T @ X / (scale**2 * variance) + precision * torch.eye(4).double()
    exact = torch.linalg.solve(gram, X.T @ torch.eye(3).double()[Y] / (scale * variance))
    torch.testing.assert_close(network.weight.T, exact, rtol=1e-4, atol=1e-5)


def test_yes_or_no_is_two_classes_of_which_one_has_the_logit_0():
    f, y = drawn(1, 3, 6)
    two, yes, classes = torch.cat([torch.zeros_like(f), f], -1), Bernoulli(), Categorical()
    torch.testing.assert_close(yes.nll(f, y), classes.nll(two, y))
    torch.testing.assert_close(yes.predictive(f), classes.predictive(two))
    torch.testing.assert_close(yes.residual(f[0], y), classes.residual(two[0], y)[:, 1:])


@pytest.mark.parametrize("kind", ["empirical", "predictive"])
def test_the_fisher_of_yes_or_no_is_that_of_its_gradients(kind):
    torch.manual_seed(0)
    network = torch.nn.Linear(4, 1).double()
    x, y = torch.randn(7, 4, dtype=torch.float64), torch.arange(7) % 2
    weights = dict(network.named_parameters())
    fisher = diagonal_fisher(network, weights, [((x,), y)], kind, Bernoulli())
    slopes = jacrev(lambda w: functional_call(network, w, (x,)).squeeze(-1))(weights)
    p = network(x).sigmoid().squeeze(-1).detach()
    factor = (p - y) ** 2 if kind == "empirical" else p * (1 - p)
    for name, slope in slopes.items():
        expected = (factor.view(-1, *(1 for _ in slope.shape[1:])) * slope.square()).sum(0)
        torch.testing.assert_close(fisher[name], expected)


def test_a_method_says_which_likelihoods_it_serves():
    EWC(torch.nn.Linear(4, 1), likelihood=Bernoulli())
    with refuses("LwF", "bernoulli", "categorical"):
        LwF(torch.nn.Linear(4, 1), likelihood=Bernoulli())


def gaussian(points=6, **settings):
    likelihood = Gaussian(**settings)
    likelihood.begin_task(points)
    return likelihood


def test_a_gaussian_is_the_expected_nll_under_the_gamma_of_its_precision():
    torch.manual_seed(0)
    likelihood = gaussian(noise_shape=3.0, noise_rate=2.0)
    f, y = torch.randn(2, 5, 1), torch.randn(5)
    noise = likelihood.noise
    tau = torch.distributions.Gamma(noise.shape, noise.rate).sample((400_000,)).double()
    squares = (f.squeeze(-1) - y).square().mean().double()
    monte_carlo = (tau / 2 * squares + (math.log(2 * math.pi) - tau.log()) / 2).mean()
    torch.testing.assert_close(likelihood.nll(f, y).double(), monte_carlo, rtol=2e-3, atol=2e-3)


def test_a_gaussians_residual_and_root_are_its_derivatives():
    likelihood, f, y = gaussian(initial_precision=3.0), torch.randn(4, 1), torch.randn(4)
    f.requires_grad_()
    (slope,) = torch.autograd.grad(likelihood.nll(f, y) * len(y), f)
    torch.testing.assert_close(likelihood.residual(f, y), slope)
    (root,) = likelihood.hessian_root(f, y)
    hessian = torch.autograd.functional.hessian(lambda o: likelihood.nll(o, y) * len(y), f)
    torch.testing.assert_close(torch.diag(root.flatten() ** 2), hessian.view(4, 4))


def test_a_settled_gaussian_is_at_the_optimum_of_its_precision():
    """Where E tau is 1 over the mean square, but for a weak prior, and further updates rest."""
    likelihood, y = gaussian(1000, noise_shape=1e-3, noise_rate=1e-3), torch.randn(1000)
    f = torch.zeros(3, 1000, 1)
    likelihood.fit((f[:, at : at + 300], y[at : at + 300]) for at in range(0, 1000, 300))
    torch.testing.assert_close(likelihood.noise.mean, 1 / y.square().mean(), rtol=1e-4, atol=0)
    before = likelihood.noise.rate.clone()
    likelihood.observe(f, y)
    torch.testing.assert_close(likelihood.noise.rate, before)


def test_a_gaussians_tasks_in_sequence_are_all_points_at_once():
    y = torch.randn(90)
    whole, parts = gaussian(90), Gaussian()
    whole.fit([(torch.zeros(1, 90, 1), y)])
    for part in y.split([20, 70]):
        parts.begin_task(len(part))
        parts.fit([(torch.zeros(1, len(part), 1), part)])
    torch.testing.assert_close(parts.noise.shape, whole.noise.shape)
    torch.testing.assert_close(parts.noise.rate, whole.noise.rate)


def test_a_gaussian_goes_on_from_its_state():
    one, other = gaussian(), Gaussian()
    one.observe(torch.zeros(6, 1), torch.ones(6))
    other.load_state_dict(one.state_dict())
    for likelihood in (one, other):
        likelihood.begin_task(9)
        likelihood.observe(torch.zeros(9, 1), torch.ones(9))
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, value in one.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=0, atol=0)


def test_a_number_refuses_targets_that_would_be_broadcast():
    gaussian = Gaussian()
    gaussian.begin_task(4)
    with refuses("[4, 1]"):
        gaussian.nll(torch.zeros(4, 1), torch.zeros(4, 1))
