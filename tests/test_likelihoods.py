"""Likelihoods against their densities, and against each other where they are the same."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacrev, vmap

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.errors import UserError
from vcl_radial.likelihoods import Bernoulli, Categorical
from vcl_radial.methods.ewc import EWC
from vcl_radial.methods.lwf import LwF

BOTH = pytest.mark.parametrize(
    ("likelihood", "outputs"), [(Categorical(), 3), (Bernoulli(), 1)], ids=["classes", "yes or no"]
)


def drawn(outputs, *shape):
    generator = torch.Generator().manual_seed(0)
    f = 2 * torch.randn(*shape, outputs, generator=generator, dtype=torch.float64)
    return f, torch.arange(shape[-1]) % max(outputs, 2)


@BOTH
def test_the_predictive_is_the_mean_of_the_draws_probabilities(likelihood, outputs):
    f, _ = drawn(outputs, 5, 6)
    together = likelihood.predictive(f).exp()
    torch.testing.assert_close(together.sum(-1), torch.ones(6, dtype=torch.float64))
    apart = torch.stack([likelihood.predictive(draw[None]).exp() for draw in f])
    torch.testing.assert_close(together, apart.mean(0))
    again = likelihood.predictive(likelihood.mean_output(f)[None]).exp()
    torch.testing.assert_close(together, again)


@BOTH
def test_the_nll_is_minus_the_log_of_the_targets_probability(likelihood, outputs):
    f, y = drawn(outputs, 4, 6)
    of_draws = [likelihood.predictive(draw[None])[torch.arange(6), y] for draw in f]
    torch.testing.assert_close(likelihood.nll(f, y), -torch.stack(of_draws).mean())
    torch.testing.assert_close(likelihood.nll(f[0], y), -of_draws[0].mean())


@BOTH
def test_residual_and_hessian_root_are_the_derivatives_of_the_nll(likelihood, outputs):
    f, y = drawn(outputs, 6)

    def nll(one, target):
        return likelihood.nll(one[None], target[None])

    torch.testing.assert_close(likelihood.residual(f, y), vmap(grad(nll))(f, y))
    root = torch.stack(likelihood.hessian_root(f, y), dim=-1)
    torch.testing.assert_close(root @ root.mT, vmap(hessian(nll))(f, y))


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
    with pytest.raises(UserError, match="LwF does not serve a bernoulli likelihood: it serves cat"):
        LwF(torch.nn.Linear(4, 1), likelihood=Bernoulli())
