import numpy as np
import pytest
import torch
from regression_helpers import generators, network
from torch.nn.functional import linear

from vcl_radial.nn import PosteriorSettings, VariationalWeights
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.tracks.regression.layers import DropoutLayer, LaneLayer, PointLayer
from vcl_radial.tracks.regression.network import LaneNetwork, initial_means, outputs
from vcl_radial.tracks.regression.variational_layers import DirectionalLayer, LocationScaleLayer

LANES = 3


def start(lanes=LANES, d=4, out=5):
    ((weight, bias),) = initial_means([d, out], range(lanes))
    return weight, bias + torch.randn(lanes, out) * 0.1


def scales(*values):
    return torch.tensor(values)


def directional(lanes=LANES, gamma=0.5):
    weight, bias = start(lanes)
    return DirectionalLayer(weight, bias, torch.full((lanes,), gamma), 0.05)


def moved(layer: LaneLayer, by=0.05):
    torch.manual_seed(5)
    parameters = layer.initial().clone()
    return parameters + by * torch.randn_like(parameters)


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("group_by", ["layer", "tensor", "unit"])
@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_closed_form_gradient_is_that_of_autograd(family, group_by, carried):
    torch.manual_seed(0)
    layer = LocationScaleLayer(*start(), scales(1.0, 0.5, 2.0), family, group_by, 0.2)
    if carried:
        layer.carry(layer.initial())
    parameters = moved(layer).requires_grad_()
    noise = [
        torch.stack(parts)
        for parts in zip(
            *(layer.noise(2, 1, k, g) for k, g in enumerate(generators(LANES))), strict=True
        )
    ]
    factor, x = scales(0.1, 0.2, 0.3), torch.randn(LANES, 7, 4)

    def gradient(draw):
        drawn, divergence = draw(parameters, noise, factor)
        total = (
            outputs([drawn], x).square().mean((1, 2, 3)).sum() + torch.as_tensor(divergence).sum()
        )
        return torch.autograd.grad(total, parameters)[0]

    by_autograd = gradient(lambda *args: LaneLayer.draw_with_kl(layer, *args))
    torch.testing.assert_close(gradient(layer.draw_with_kl), by_autograd, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("group_by", ["layer", "tensor", "unit"])
@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_a_lanes_divergence_is_that_of_a_single_layers_weights(family, group_by):
    torch.manual_seed(0)
    weight, bias = start()
    layer = LocationScaleLayer(weight, bias, scales(1.0, 0.5, 2.0), family, group_by, 0.2)
    for lane, prior_scale in enumerate((1.0, 0.5, 2.0)):
        settings = PosteriorSettings(family, group_by, initial_noise=0.2, prior_scale=prior_scale)
        single = VariationalWeights(weight[lane], bias[lane], settings)
        torch.testing.assert_close(layer.kl(layer.initial())[lane], single.kl())


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_a_draw_without_noise_is_the_initial_means(family):
    torch.manual_seed(0)
    weight, bias = start()
    layer = LocationScaleLayer(weight, bias, torch.ones(LANES), family, "layer", 0.2)
    none = [torch.zeros(LANES, 2, *shape) for shape in layer.block_shapes]
    drawn = layer.draw(layer.initial(), none)
    torch.testing.assert_close(drawn.weight[:, 1], weight)
    torch.testing.assert_close(drawn.bias[:, 0], bias)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_every_family_starts_with_the_same_noise_of_one_weight(family):
    torch.manual_seed(0)
    weight, bias = start(lanes=1)
    layer = LocationScaleLayer(weight, bias, torch.ones(1), family, "layer", 0.2)
    noise = layer.noise(20_000, 1, 0, torch.Generator().manual_seed(0))
    drawn = layer.draw(layer.initial(), [part[None] for part in noise])
    np.testing.assert_allclose(drawn.weight[0].std(0), 0.2, rtol=0.04)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_a_carried_posterior_has_no_divergence_from_itself(family):
    torch.manual_seed(0)
    layer = LocationScaleLayer(*start(), torch.ones(LANES), family, "layer", 0.2)
    parameters = moved(layer)
    assert layer.kl(parameters).min() > 1
    layer.carry(parameters)
    torch.testing.assert_close(layer.kl(parameters), torch.zeros(LANES), atol=1e-4, rtol=0)


def single_rdp(layer, weight, bias, lane, gamma=0.5):
    """The same posterior as `vcl_radial.nn.rdp` has it."""
    single = RDPSettings("double", 0.05, gamma).make_weights(weight[lane], bias[lane])
    rows, columns = layer.factors(moved(layer))[0]
    with torch.no_grad():
        for block, factor in ((single.rows, rows), (single.columns, columns)):
            for name, value in factor._asdict().items():
                getattr(block, name).copy_(value[lane])
    return single


def test_rdp_lanes_have_the_divergence_and_the_mean_of_single_layers():
    torch.manual_seed(0)
    weight, bias = start()
    layer = DirectionalLayer(weight, bias, torch.full((LANES,), 0.5), 0.05)
    parameters = moved(layer)
    noise = zip(*(layer.noise(4000, 1, k, g) for k, g in enumerate(generators(LANES))), strict=True)
    drawn = layer.draw(parameters, [torch.stack(part) for part in noise]).weight
    bias_kl = layer.factors(parameters)[1].kl(layer.bias_prior)
    for lane in range(LANES):
        single = single_rdp(layer, weight, bias, lane)
        expected = single.rows.kl() + single.columns.kl() + bias_kl[lane]
        torch.testing.assert_close(layer.kl(parameters)[lane].float(), expected, rtol=1e-5, atol=0)
        mean = single.mean()[0]
        error = drawn[lane].std(0) / 4000**0.5
        assert ((drawn[lane].mean(0) - mean).abs() < 5 * error).all()


def test_a_carried_rdp_is_the_carried_single_one():
    torch.manual_seed(0)
    weight, bias = start()
    layer = DirectionalLayer(weight, bias, torch.full((LANES,), 0.5), 0.05)
    parameters = moved(layer)
    layer.carry(parameters)
    torch.testing.assert_close(layer.kl(parameters).float(), torch.zeros(LANES), atol=1e-4, rtol=0)
    single = single_rdp(layer, weight, bias, 1)
    for block in (single.rows, single.columns):
        block.consolidate()
    torch.manual_seed(9)
    further = parameters + 0.1 * torch.randn_like(parameters)
    rows, columns = layer.factors(further)[0]
    with torch.no_grad():
        for block, factor in ((single.rows, rows), (single.columns, columns)):
            for name, value in factor._asdict().items():
                getattr(block, name).copy_(value[1])
    bias_kl = layer.factors(further)[1].kl(layer.bias_prior)[1]
    expected = single.rows.kl() + single.columns.kl() + bias_kl
    torch.testing.assert_close(layer.kl(further)[1].float(), expected, rtol=1e-4, atol=1e-4)


def test_dropout_leaves_the_mean_of_a_layer_and_masks_row_by_row():
    torch.manual_seed(0)
    weight, bias = start(lanes=2)
    layer = DropoutLayer(weight, bias, torch.ones(2), scales(0.5, 0.1))
    masks = [layer.noise(4000, 6, lane, g)[0] for lane, g in enumerate(generators(2))]
    assert masks[0].unique().tolist() == [0.0, 2.0]
    torch.testing.assert_close(masks[1].unique(), torch.tensor([0.0, 1 / 0.9]))
    assert not torch.equal(masks[0][:, 0], masks[0][:, 1])
    x = torch.randn(2, 6, 4)
    f = outputs_of_first_unit(layer, torch.stack(masks), x)
    expected = (x @ weight.transpose(1, 2) + bias[:, None])[..., 0]
    error = f.std(1) / 4000**0.5
    assert ((f.mean(1) - expected).abs() < 5 * error).all()


def outputs_of_first_unit(layer, masks, x):
    drawn = layer.draw(layer.initial(), (masks,))
    one = drawn._replace(weight=drawn.weight[:, :, :1], bias=drawn.bias[:, :, :1])
    return outputs([one], x)


def test_dropouts_divergence_is_the_expected_square_of_its_weights():
    """E ||M z / keep||^2 / 2 s^2, the part of KL(q || p) that depends on M, and the biases'."""
    weight, bias = start(lanes=1)
    layer = DropoutLayer(weight, bias, scales(0.7), scales(0.2))
    (masks,) = layer.noise(40_000, 1, 0, torch.Generator().manual_seed(0))
    squares = (weight[0] * masks).square().sum((1, 2)).mean() + bias.square().sum()
    expected = squares / (2 * 0.7**2)
    torch.testing.assert_close(layer.kl(layer.initial())[0], expected, rtol=0.01, atol=0)


def test_a_point_layers_divergence_is_minus_the_log_prior():
    weight, bias = start(lanes=2)
    layer = PointLayer(weight, bias, scales(1.0, 0.5))
    for lane, scale in enumerate((1.0, 0.5)):
        parameters = torch.cat([weight[lane].flatten(), bias[lane]])
        log_prior = torch.distributions.Normal(0, scale).log_prob(parameters).sum()
        at_zero = torch.distributions.Normal(0, scale).log_prob(torch.zeros_like(parameters)).sum()
        torch.testing.assert_close(layer.kl(layer.initial())[lane], at_zero - log_prior)


def test_a_point_estimate_cannot_be_carried():
    with pytest.raises(NotImplementedError, match="no posterior"):
        PointLayer(*start(), torch.ones(LANES)).carry(torch.zeros(1))


def test_outputs_are_those_of_each_lanes_and_draws_own_network():
    torch.manual_seed(0)
    net = network("radial", noise=0.5)
    drawn = net.draw(net.noise(1, 4)[0])
    x = torch.randn(3, 7, 3)
    found = outputs(drawn, x)
    (w1, b1, _), (w2, b2, _) = drawn
    for lane in range(3):
        for s in range(4):
            h = linear(x[lane], w1[lane, s], b1[lane, s]).relu()
            expected = linear(h, w2[lane, s], b2[lane, s]).squeeze(-1)
            torch.testing.assert_close(found[lane, s], expected, rtol=1e-5, atol=1e-6)


def test_he_starts_depend_on_the_lanes_own_seed():
    together, alone = initial_means([4, 5, 1], [7, 8]), initial_means([4, 5, 1], [8])
    assert torch.equal(together[0][0][1], alone[0][0][0])
    assert not torch.equal(together[0][0][0], together[0][0][1])


def test_parts_of_the_parameters_are_the_layers_own():
    torch.manual_seed(0)
    layers = [PointLayer(w, b, torch.ones(2)) for w, b in initial_means([4, 5, 1], [7, 8])]
    net = LaneNetwork(layers, generators(2))
    for layer, part in zip(layers, net.parts(), strict=True):
        assert torch.equal(part, layer.initial())
    torch.testing.assert_close(net.kl(), net.parameters.square().sum(1) / 2)
