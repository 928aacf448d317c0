import pytest
import torch

from reports.seeds.pruning.lenet.network import (
    SETS,
    BayesianLeNet,
    Kept,
    PointLeNet,
    pruned_logits,
)
from reports.seeds.pruning.settings import LeNetRecipe
from vcl_radial.nn import kl_divergence


@pytest.fixture
def point():
    torch.manual_seed(0)
    network = PointLeNet()
    with torch.no_grad():
        for layer in network.children():
            layer.bias.normal_()
    return network


def layers_of(network):
    return {name: (layer.weight, layer.bias) for name, layer in network.named_children()}


@torch.no_grad()
def without(network, kept):
    """The same network with what is left out set to zero."""
    for layer, left in (("conv1", kept.conv1), ("conv2", kept.conv2), ("fc1", kept.hidden)):
        getattr(network, layer).weight[~left] = 0
        getattr(network, layer).bias[~left] = 0
    network.fc1.weight[:, ~kept.inputs] = 0
    return network


def some(share, seed=1):
    g = torch.Generator().manual_seed(seed)
    return Kept(*(torch.rand(n, generator=g) < share for n in (20, 50, 800, 500)))


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_leaving_units_out_is_setting_them_to_zero(point, share):
    x, kept = torch.randn(7, 1, 28, 28), some(share)
    pruned = pruned_logits(layers_of(point), kept, x)
    torch.testing.assert_close(pruned, without(point, kept)(x), rtol=1e-4, atol=1e-4)


def test_an_input_goes_with_its_filter_and_a_filter_with_its_last_input():
    conv2 = torch.ones(50, dtype=torch.bool)
    conv2[3] = False
    inputs = torch.ones(800, dtype=torch.bool)
    inputs[5 * 16 : 6 * 16] = False
    inputs[0] = False
    kept = Kept(torch.ones(20).bool(), conv2, inputs, torch.ones(500).bool())
    assert not kept.inputs[3 * 16 : 4 * 16].any()
    assert not kept.conv2[5]
    assert str(kept.architecture) == f"20-48-{48 * 16 - 1}-500"


def test_a_bayesian_network_starts_at_the_point_estimates_and_scatters_about_them(point):
    recipe = LeNetRecipe(length=0.999, spread=1e-3, prior_scale=1.0, prior_length=0.9)
    network = BayesianLeNet(point, recipe)
    for name, (weight, bias) in network.means().items():
        expected = getattr(point, name)
        torch.testing.assert_close(weight, expected.weight, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(bias, expected.bias)
    x = torch.randn(5, 1, 28, 28)
    everything = Kept(*(torch.ones(n).bool() for n in (20, 50, 800, 500)))
    centre = pruned_logits(network.means(), everything, x)
    torch.testing.assert_close(centre, point(x), rtol=1e-2, atol=1e-2)
    with torch.no_grad():
        draws = torch.stack([network(x) for _ in range(40)])
    assert (draws.std(0) > 0).all()
    assert (draws.mean(0) - centre).norm() < 0.2 * centre.norm()
    kl_divergence(network, [0]).backward()
    blocks = [network.conv1.weights.rows, network.fc1.weights.rows, network.fc1.weights.columns]
    assert all(block.loc.grad.abs().sum() > 0 for block in blocks)
    assert tuple(SETS) == ("conv1", "conv2", "inputs", "hidden")
