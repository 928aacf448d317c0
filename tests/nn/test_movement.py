"""Truths about how far a posterior is from its prior."""

import pytest
import torch

from vcl_radial.nn import MLP, PosteriorSettings, consolidate, kl_divergence
from vcl_radial.nn.movement import AT_REST, layer_starts, movement


def network(family="radial", grouping="unit", **settings):
    torch.manual_seed(0)
    posterior = PosteriorSettings(family, grouping, initial_noise=0.02)
    net = MLP(30, 3, hidden=(20, 10), posterior=posterior, **settings)
    net.head.adapt([0, 1])
    consolidate(net, [0])
    return net


@pytest.mark.parametrize("family", ["gaussian", "radial", "radial-eq44"])
@pytest.mark.parametrize("grouping", ["layer", "tensor", "unit"])
class TestEveryFamily:
    def test_a_posterior_that_is_its_prior_has_not_moved(self, family, grouping):
        for layer in movement(network(family, grouping), [0]):
            assert layer.moved == 0
            assert layer.noise == pytest.approx(0.02, rel=1e-4)
            assert layer.noise_to_prior == pytest.approx(1, rel=1e-4)
            assert layer.units_at_rest == 100

    def test_movement_counts_in_the_noise_of_one_weight(self, family, grouping):
        """A shift of all means by 3 noises is a movement of 3, whatever shares a radius."""
        net = network(family, grouping)
        with torch.no_grad():
            for name, parameter in net.named_parameters():
                if name.endswith("mean"):
                    parameter.add_(3 * 0.02)
        for layer in movement(net, [0]):
            assert layer.moved == pytest.approx(3, rel=1e-3)
            assert layer.units_at_rest == 0

    def test_the_kl_of_the_layers_is_that_of_the_network(self, family, grouping):
        net = network(family, grouping)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        total = sum(layer.kl for layer in movement(net, [1]))
        assert total == pytest.approx(kl_divergence(net, [1]).item(), rel=1e-5)


def test_layers_have_their_names_and_the_heads_of_all_tasks_one():
    assert [layer.layer for layer in movement(network(), [1])] == ["body.0", "body.1", "head"]


@pytest.mark.parametrize("family", ["gaussian", "radial", "radial-eq44"])
@pytest.mark.parametrize(
    ("grouping", "sizes"),
    [
        ("layer", [31 * 20, 21 * 10, 11 * 3]),
        ("tensor", [30 * 20, 20, 20 * 10, 10, 10 * 3, 3]),
        ("unit", [31, 21, 11]),
    ],
)
def test_the_start_has_the_scale_the_size_and_the_spread_of_the_draws(family, grouping, sizes):
    torch.manual_seed(0)
    posterior = PosteriorSettings(family, grouping, initial_rho=-2.975)
    net = MLP(30, 3, hidden=(20, 10), posterior=posterior)
    starts = layer_starts(net)
    assert [start.group_size for start in starts] == sizes
    for start in starts:
        assert start.scale == pytest.approx(0.04977, rel=1e-3)
    block = next(net.body[0].weights.children())[0]
    spread = (block.posterior.sample(40_000) - block.mean).detach().square().mean().sqrt()
    assert starts[0].noise == pytest.approx(float(spread), rel=0.03)
    assert len(net.head.heads) == 0  # nothing was made


def test_equal_noise_of_a_weight_is_another_scale_for_each_size():
    starts = layer_starts(network("radial", "layer"))
    assert [start.noise for start in starts] == pytest.approx([0.02] * 3, rel=1e-5)
    assert starts[0].scale == pytest.approx(0.02 * 620**0.5, rel=1e-5)
    assert str(starts[0]) == "body.0: sigma = 0.498, D = 620, noise of a weight = 0.02"


def test_point_estimates_start_without_noise():
    assert layer_starts(MLP(30, 3, hidden=(20,), posterior=None)) == []


def test_a_unit_is_at_rest_by_itself():
    net = network()
    shift = 0.02 * AT_REST
    with torch.no_grad():
        (block,) = net.body[0].weights.posterior_blocks()
        block.mean[:5] += 1.01 * shift
        block.mean[5:] += 0.99 * shift
    first, *_ = movement(net, [0])
    assert first.units_at_rest == pytest.approx(100 * 15 / 20)


def test_point_heads_have_no_posterior():
    assert [layer.layer for layer in movement(network(point_heads=True), [0])] == [
        "body.0",
        "body.1",
    ]


def test_growing_noise_shows():
    net = network("gaussian")
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("rho"):
                parameter.add_(1)
    assert all(2.6 < layer.noise_to_prior < 2.8 for layer in movement(net, [0]))
