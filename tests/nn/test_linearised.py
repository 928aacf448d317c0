import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev
from torch.nn.functional import linear, relu

from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, BayesianConv2d, BayesianLinear, GaussianNetwork, PosteriorSettings
from vcl_radial.nn.linearised import linearised, output_moments
from vcl_radial.nn.rdp import RDPSettings

FAMILIES = [("gaussian", "layer"), ("radial", "layer"), ("radial", "tensor"), ("radial", "unit")]


@pytest.fixture
def network_of():
    def make(family, grouping="layer", hidden=(7, 5), **settings):
        torch.manual_seed(0)
        posterior = PosteriorSettings(family, grouping, initial_noise=0.1)
        network = MLP(4, 3, hidden=hidden, posterior=posterior, **settings)
        network.head.adapt([0])
        for name, parameter in network.double().named_parameters():
            if name.endswith("rho"):
                nn.init.uniform_(parameter, -4, -1)
        return network

    return make


def points(n=6):
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def by_jacobian(network, x):
    """Moments from the whole Jacobian of a plain network with these means."""
    layers = [module for module in network.modules() if isinstance(module, BayesianLinear)]
    means = [layer.weights.mean() for layer in layers]
    noises = [
        layer.weights.split([block.weight_noise() for block in layer.weights.posterior_blocks()])
        for layer in layers
    ]

    def call(weights):
        h = x
        for k, (weight, bias) in enumerate(weights):
            h = linear(relu(h) if k else h, weight, bias)
        return h

    variance = 0
    for of_layer, noise in zip(jacrev(call)(means), noises, strict=True):
        for jacobian, sigma in zip(of_layer, noise, strict=True):
            variance = variance + (jacobian * sigma).square().flatten(2).sum(2)
    return call(means), variance


@pytest.mark.parametrize(("family", "grouping"), FAMILIES)
def test_moments_are_those_of_the_whole_jacobian_and_so_are_their_gradients(
    family, grouping, network_of
):
    network, x = network_of(family, grouping), points()
    found = output_moments(network, lambda: network(x, 0))
    wanted = by_jacobian(network, x)
    torch.testing.assert_close(tuple(found), wanted)
    weight = torch.randn(6, 3, dtype=torch.float64)
    gradients = [
        torch.autograd.grad(
            (weight * (mean + variance.log())).sum(), list(network.parameters()), allow_unused=True
        )
        for mean, variance in (found, wanted)
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(("family", "grouping"), FAMILIES)
def test_of_a_linear_network_they_are_the_moments_of_its_draws(family, grouping, network_of):
    network, x = network_of(family, grouping, hidden=()), points(3)
    with torch.no_grad():
        moments = output_moments(network, lambda: network(x, 0))
        weights = network.head.heads["0"].weights
        blocks = [block.posterior.sample(5_000) for block in weights.posterior_blocks()]
        weight, bias = weights.split(blocks)
        draws = torch.einsum("noi,bi->nbo", weight, x) + bias[:, None]
    torch.testing.assert_close(draws.mean(0), moments.mean, atol=0.02, rtol=0)
    torch.testing.assert_close(draws.var(0), moments.variance, atol=0, rtol=0.1)


def test_layers_of_point_estimates_are_exact(network_of):
    network, x = network_of("gaussian", point_heads=True), points()
    moments = output_moments(network, lambda: network(x, 0))
    for layer in network.body:  # noise of the body alone
        for block in layer.weights.posterior_blocks():
            nn.init.constant_(block.rho, -100.0)
    still = output_moments(network, lambda: network(x, 0))
    torch.testing.assert_close(moments.mean, still.mean)
    torch.testing.assert_close(still.variance, torch.zeros_like(still.variance))
    assert bool((moments.variance > 0).all())


def test_without_gradient_nothing_is_kept_and_draws_are_draws_again(network_of):
    network, x = network_of("radial"), points()
    with torch.no_grad():
        moments = output_moments(network, lambda: network(x, 0))
    assert not moments.mean.requires_grad
    assert not moments.variance.requires_grad
    assert not torch.equal(network(x, 0), network(x, 0))
    assert all(parameter.grad is None for parameter in network.parameters())


def test_what_cannot_be_linearised_is_named(network_of):
    x = points()
    for posterior in (RDPSettings(), *map(PosteriorSettings, ("low-rank", "radial-low-rank"))):
        other = MLP(4, 3, hidden=(5,), multi_head=False, posterior=posterior)
        with pytest.raises(UserError, match=r"'body\.0\.weights' is not of one"):
            output_moments(other, lambda other=other: other(x.float(), 0))
    conv = BayesianConv2d(1, 1, 3)
    with pytest.raises(UserError, match="'weights' is not of one"):
        output_moments(conv, lambda: conv(torch.zeros(1, 1, 3, 3)))
    plain = MLP(4, 3, posterior=None)
    with pytest.raises(UserError, match="give it a posterior"):
        output_moments(plain, lambda: plain(x.float(), 0))
    layer = BayesianLinear(4, 4).double()
    with pytest.raises(UserError, match="called once"):
        output_moments(layer, lambda: layer(layer(x)))
    assert not torch.equal(layer(x), layer(x))


@pytest.mark.parametrize("convolution", [False, True])
def test_a_draw_is_the_networks_output_and_its_jacobian_times_the_move(convolution):
    torch.manual_seed(0)
    network = MLP(4, 3, hidden=(7, 5), posterior=None)
    network.head.adapt([2])
    network, inputs = network.double(), (points(), 2)
    if convolution:
        layers = nn.Conv1d(1, 2, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(6, 3)
        network, inputs = nn.Sequential(*layers).double(), (points().unsqueeze(1),)
    weights = dict(network.named_parameters())
    still, *_ = weights
    moves = {name: torch.randn_like(w) for name, w in weights.items() if name != still}
    slopes = jacrev(lambda w: functional_call(network, w, inputs))(weights)
    expected = network(*inputs) + sum(
        slopes[name].flatten(2) @ move.flatten() for name, move in moves.items()
    )
    torch.testing.assert_close(linearised(network, moves, *inputs), expected)
    with torch.no_grad():
        torch.testing.assert_close(linearised(network, moves, *inputs), expected)


def test_draws_of_a_gaussian_network_that_is_linearised_have_its_moments():
    """Its weights have the precisions of an optimiser, one for each."""
    torch.manual_seed(0)
    plain = MLP(4, 3, hidden=(7,), multi_head=False, posterior=None).double()
    network = GaussianNetwork(plain, noisy_training=False, linearised=True)
    posteriors, x = network.posteriors([0]), points()
    for q in posteriors.values():
        q.precision = 10 + 100 * torch.rand_like(q.mean)
    assert torch.equal(network.train()(x), plain(x))
    network.eval()
    with torch.no_grad():
        draws = torch.stack([network(x) for _ in range(2_000)])
    slopes = jacrev(lambda w: functional_call(plain, w, (x,)))(dict(plain.named_parameters()))
    variance = sum(
        (slopes[name].square() / q.precision).flatten(2).sum(2) for name, q in posteriors.items()
    )
    torch.testing.assert_close(draws.var(0), variance, rtol=0.2, atol=0)
    error = (draws.mean(0) - plain(x)) / (variance / len(draws)).sqrt()
    assert error.abs().max() < 5
