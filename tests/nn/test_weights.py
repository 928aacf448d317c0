import math

import pytest
import torch
from failing import fails
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.nn import (
    MLP,
    BayesianLinear,
    ClosedFormGradients,
    PosteriorSettings,
    VariationalWeights,
    consolidate,
    kl_divergence,
    posterior_blocks,
)
from vcl_radial.nn.blocks import inverse_softplus
from vcl_radial.nn.movement import movement
from vcl_radial.nn.weights import held_scales
from vcl_radial.posteriors import Gaussian

CLOSED_FORM = ["gaussian", "radial"]
GROUPINGS = ["layer", "tensor", "unit"]


def layer(**settings):
    torch.manual_seed(0)
    return BayesianLinear(40, 10, posterior=PosteriorSettings(**settings))


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.7, 5.0, 40.0])
def test_inverse_softplus_undoes_softplus(scale):
    rho = torch.tensor(inverse_softplus(scale), dtype=torch.float64)
    assert torch.nn.functional.softplus(rho).item() == pytest.approx(scale, rel=1e-6)


@pytest.mark.parametrize("family", CLOSED_FORM)
def test_the_scale_starts_at_softplus_of_rho(family):
    for block in layer(family=family, initial_rho=-6.0).weights.blocks:
        torch.testing.assert_close(
            block.posterior.scale, torch.full_like(block.mean, math.log1p(math.exp(-6.0)))
        )


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("family", CLOSED_FORM)
def test_initial_noise_is_the_noise_of_one_weight_in_every_family(family, grouping):
    weights = layer(family=family, grouping=grouping, initial_noise=0.03).weights
    draws = torch.stack([weights.sample()[0] for _ in range(3000)])
    noise = (draws - weights.mean()[0]).square().mean().sqrt().item()
    # 3000 draws of a squared radius that is chi-square with one degree of freedom.
    assert noise == pytest.approx(0.03, rel=4 / math.sqrt(2 * 3000))


@pytest.mark.parametrize("family", CLOSED_FORM)
def test_the_first_prior_is_gaussian_and_the_carried_one_is_the_posterior(family):
    block = layer(family=family, prior_scale=2.0).weights.blocks[0]
    assert type(block.prior) is Gaussian
    assert block.prior.scale.unique().tolist() == [2.0]
    block.consolidate()
    assert type(block.prior) is type(block.posterior)
    torch.testing.assert_close(block.prior.mean, block.posterior.mean)
    torch.testing.assert_close(block.prior.scale, block.posterior.scale)


def test_the_kl_of_a_layer_is_the_sum_over_its_groups():
    weights = layer(family="radial", grouping="unit").weights
    weights.consolidate()
    with torch.no_grad():
        weights.blocks[0].mean[3].add_(0.2)
    one = weights.kl()
    with torch.no_grad():
        weights.blocks[0].mean[7].add_(0.2)
    torch.testing.assert_close(weights.kl(), 2 * one)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grouping", "row"),
        ("initial_noise", 0.0),
        ("initial_noise", float("nan")),
        ("prior_scale", -1.0),
        ("rank", 0),
    ],
)
def test_impossible_settings_are_named(key, value):
    with fails(key, value):
        PosteriorSettings(**{key: value})
    with pytest.raises(UserError, match="posterior = 'cauchy'"):
        PosteriorSettings("cauchy")


def test_a_scale_is_held_only_where_that_was_asked_for():
    own = layer()
    block = own.weights.blocks[0]
    before = block.scale()
    with torch.no_grad(), held_scales(own):
        block.rho.add_(1.0)
        assert torch.equal(block.posterior.scale, before)
        with torch.enable_grad():
            assert torch.equal(block.posterior.scale, block.scale())
    with torch.no_grad():
        assert torch.equal(block.posterior.scale, block.scale())
    assert not torch.equal(block.scale(), before)


@pytest.mark.parametrize("fused", [True, False])
def test_the_scale_follows_an_optimiser(fused):
    """Fused ones change parameters without PyTorch's counting it."""
    own = layer()
    optimizer = torch.optim.Adam(own.parameters(), lr=0.1, fused=fused)
    block = own.weights.blocks[0]
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(
                block.posterior.scale, torch.nn.functional.softplus(block.rho)
            )
        block.posterior.scale.sum().backward()
        optimizer.step()


class Steady(VariationalWeights):
    """A layer's own kind of posterior, with nothing but what it has to say."""

    def __init__(self, weight, bias):
        nn.Module.__init__(self)
        self.weight, self.offset = nn.Parameter(weight), nn.Parameter(bias)
        self.register_buffer("old", torch.zeros_like(weight))

    def sample(self):
        return self.weight, self.offset

    def mean(self):
        return self.weight, self.offset

    def kl(self):
        return (self.weight - self.old).square().sum()

    def consolidate(self):
        self.old.copy_(self.weight.detach())


class SteadySettings:
    def make_weights(self, weight, bias):
        return Steady(weight, bias)


def test_a_kind_of_ones_own_needs_to_say_nothing_of_blocks():
    network = MLP(6, 2, hidden=[4], posterior=SteadySettings())
    assert posterior_blocks(network, [0]) == []
    assert not ClosedFormGradients.serves(network)
    assert kl_divergence(network, [0]) > 0
    consolidate(network, [0])
    assert kl_divergence(network, [0]) == 0
    assert movement(network, [0]) == []


@pytest.mark.parametrize("name", ["sample", "split", "kl", "consolidate"])
def test_a_layer_that_does_one_thing_by_itself_is_not_all_in_blocks(name):
    weights = layer(family="gaussian").weights
    assert weights.all_in_blocks
    weights.__class__ = type("Own", (VariationalWeights,), {name: lambda self: None})
    assert not weights.all_in_blocks
