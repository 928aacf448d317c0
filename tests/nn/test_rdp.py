import math

import pytest
import torch
from failing import fails

from vcl_radial.nn import BayesianConv2d, BayesianLinear, consolidate, kl_divergence
from vcl_radial.nn.linear import he_normal
from vcl_radial.nn.rdp import RADII, RDPSettings, RDPWeights
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior


def weights(grouping="row", inputs=30, outputs=12, seed=0, **settings):
    torch.manual_seed(seed)
    bias = torch.randn(outputs) / 10
    return RDPWeights(he_normal(outputs, inputs), bias, RDPSettings(grouping, **settings))


def with_rdp(layer, grouping="row", **settings):
    """A layer whose weights have an RDP with the means that they have."""
    weight, bias = (None if part is None else part.detach() for part in layer.weights.mean())
    layer.weights = RDPSettings(grouping, **settings).make_weights(weight, bias)
    return layer


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("grouping", RDP.groupings)
def test_the_means_start_where_they_are_told(grouping, radius):
    torch.manual_seed(1)
    weight, bias = he_normal(12, 30), torch.randn(12)
    layer = RDPWeights(weight, bias, RDPSettings(grouping, initial_noise=0.05, radius=radius))
    torch.testing.assert_close(layer.mean()[0], weight, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(layer.mean()[1], bias)


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("grouping", RDP.groupings)
def test_draws_scatter_about_the_means(grouping, radius):
    layer = weights(grouping, initial_noise=0.05, radius=radius)
    draws = [layer.sample() for _ in range(300)]
    for drawn, mean in zip(zip(*draws, strict=True), layer.mean(), strict=True):
        stack = torch.stack(drawn)
        error = stack.std(0) / math.sqrt(300)
        assert (abs(stack.mean(0) - mean) < 5 * error).all()


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("grouping", RDP.groupings)
def test_initial_noise_is_the_noise_of_one_weight(grouping, radius):
    layer = weights(grouping, inputs=60, outputs=50, initial_noise=0.01, radius=radius)
    draws = torch.stack([layer.sample()[0] for _ in range(150)])
    noise = (draws - layer.mean()[0]).square().mean().sqrt().item()
    assert noise == pytest.approx(0.01, rel=0.05)
    draws = torch.stack([layer.sample()[1] for _ in range(150)])
    assert (draws - layer.mean()[1]).std().item() == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("noise", [0.0025, 0.1, 0.3, 1.0])
def test_noise_across_the_radius_is_the_initial_noise_however_large_it_is(noise):
    """... and the mean stays where it was told: a short mean of directions has a longer radius."""
    layer = weights("row", inputs=60, outputs=50, initial_noise=noise)
    mean = layer.mean()[0].detach()
    torch.testing.assert_close(mean, weights("row", inputs=60, outputs=50).mean()[0])
    off = torch.stack([layer.sample()[0] for _ in range(200)]).detach() - mean
    mu = mean / mean.norm(dim=1, keepdim=True)
    across = off - (off * mu).sum(-1, keepdim=True) * mu
    found = (across.square().sum(-1) / 59).mean().sqrt().item()
    assert found == pytest.approx(noise, rel=0.1 if noise == 1 else 0.02)


def test_rows_and_columns_are_what_their_names_say():
    """Only weights of one group scatter together: here by the group's own radius alone."""
    for grouping, axis in (("row", 0), ("column", 1)):
        layer = weights(grouping, initial_noise=1e-3)
        (block,) = layer.factor_blocks().values()
        with torch.no_grad():
            block.rho[:, :-1] = 0.0
        relative = torch.stack([layer.sample()[0] for _ in range(200)]) / layer.mean()[0]
        of_group = relative.median(dim=2 - axis, keepdim=True).values
        assert of_group.std(0).min() > 0.3
        # The noise of the directions is small, so within a group all weights keep step.
        assert (relative / of_group - 1).abs().median() < 0.02


def test_a_column_grouping_is_the_row_grouping_of_the_transpose():
    torch.manual_seed(0)
    weight = he_normal(12, 30)
    columns = RDPWeights(weight, None, RDPSettings("column"))
    rows = RDPWeights(weight.T.contiguous(), None, RDPSettings("row"))
    torch.testing.assert_close(columns.kl(), rows.kl())
    torch.manual_seed(5)
    drawn = columns.sample()[0]
    torch.manual_seed(5)
    torch.testing.assert_close(drawn.T, rows.sample()[0])


def test_a_double_grouping_is_the_product_of_a_row_and_a_column_factor():
    layer = weights("double")
    torch.manual_seed(3)
    drawn = layer.sample()
    torch.manual_seed(3)
    layer.bias.sample()  # in the order in which the layer draws
    product = layer.rows.posterior.sample(1)[0] * layer.columns.posterior.sample(1)[0].T
    torch.testing.assert_close(drawn[0], product)
    parts = layer.rows.kl() + layer.columns.kl() + layer.bias.kl()
    torch.testing.assert_close(layer.kl(), parts)


@pytest.mark.parametrize("grouping", RDP.groupings)
def test_convolutions_are_grouped_by_output_and_input_channel(grouping):
    torch.manual_seed(0)
    plain = BayesianConv2d(4, 6, 3, posterior=None)
    mean = plain.weights.mean()[0].detach()
    layer = with_rdp(plain, grouping, initial_noise=0.01)
    shapes = {"row": [(6, 36)], "column": [(4, 54)], "double": [(6, 36), (4, 54)]}[grouping]
    blocks = layer.weights.factor_blocks().values()
    assert [tuple(block.direction.shape) for block in blocks] == shapes
    torch.testing.assert_close(layer.weights.mean()[0], mean, rtol=1e-5, atol=1e-7)
    assert layer(torch.randn(2, 4, 8, 8)).shape == (2, 6, 6, 6)


def test_the_first_prior_is_half_cauchy_and_the_carried_one_is_the_posterior():
    block = weights(prior_scale=0.3, prior_length=0.7).rows
    assert block.prior == HalfCauchyPrior(0.3, 0.7)
    block.consolidate()
    q, p = block.posterior, block.prior
    assert type(p) is RDP
    assert torch.equal(p.direction.mean_direction, q.direction.mean_direction)
    assert torch.equal(p.direction.concentration, q.direction.concentration)
    assert torch.equal(p.factors.loc, q.factors.loc)
    assert torch.equal(p.factors.scale, q.factors.scale)


@pytest.mark.parametrize("grouping", RDP.groupings)
def test_gradients_are_finite_and_reach_every_parameter(grouping):
    torch.manual_seed(0)
    layer = with_rdp(BayesianLinear(40, 10), grouping)
    x = torch.randn(16, 40)
    (layer(x).square().mean() + layer.weights.kl() / 1000).backward()
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()


def test_networks_of_such_layers_are_carried():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        with_rdp(BayesianLinear(6, 5), "row"),
        torch.nn.ReLU(),
        with_rdp(BayesianLinear(5, 3), "double"),
        BayesianLinear(3, 2),
    )
    parts = [layer.weights.kl() for layer in net if hasattr(layer, "weights")]
    torch.testing.assert_close(kl_divergence(net, []), torch.stack(parts).sum())
    assert kl_divergence(net, []) > 1
    consolidate(net, [])
    assert kl_divergence(net, []).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grouping", "unit"),
        ("initial_noise", 0.0),
        ("initial_noise", float("nan")),
        ("prior_scale", -1.0),
        ("prior_length", -0.1),
        ("prior_length", 1.0),
        ("radius", "gamma"),
    ],
)
def test_impossible_settings_are_named(key, value):
    with fails(key, value):
        RDPSettings(**{key: value})


def test_groups_without_a_direction_are_refused():
    with fails("grouping", "5 groups of 1"):
        RDPWeights(torch.ones(1, 5), None, RDPSettings("column"))
    with fails("grouping", "not all 0"):
        RDPWeights(torch.zeros(4, 5), None, RDPSettings("row"))


def test_a_sampler_draws_in_place_of_the_posterior_where_gradients_are_wanted():
    layer = weights()
    layer.sampler = layer.mean
    assert torch.equal(layer.sample()[0], layer.mean()[0])
    with torch.no_grad():
        assert not torch.equal(layer.sample()[0], layer.mean()[0])
