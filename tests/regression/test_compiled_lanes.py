"""The compiled steps are those that PyTorch makes."""

import math

import pytest
import torch
from regression_helpers import generators, lane_data, network

from vcl_radial import native
from vcl_radial.noise_precision import NoisePrecision
from vcl_radial.tracks.regression.adam import LaneAdam
from vcl_radial.tracks.regression.compiled import CompiledLanes
from vcl_radial.tracks.regression.fit import FitSettings, fit
from vcl_radial.tracks.regression.layers import DropoutLayer, PointLayer
from vcl_radial.tracks.regression.network import LaneNetwork, initial_means

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason=str(native.unavailable()))

POINTS = 300, 310, 290


def of_points(make):
    means = initial_means([3, 7, 6, 1], range(3))
    scale = torch.tensor([1.0, 0.5, 2.0])
    return lambda: LaneNetwork([make(w, b, scale) for w, b in means], generators(3))


def carried(family, group_by):
    def make():
        net = network(family, group_by=group_by, noise=0.2)
        net.carry()
        return net

    return make


NETWORKS = {
    **{
        f"{family} {group_by}": lambda f=family, g=group_by: network(f, group_by=g, prior=0.5)
        for family in ("gaussian", "radial", "radial-eq44")
        for group_by in ("layer", "tensor", "unit")
    },
    **{
        f"carried {family} {group_by}": carried(family, group_by)
        for family in ("gaussian", "radial", "radial-eq44")
        for group_by in ("layer", "unit")
    },
    "points": of_points(PointLayer),
    "dropout": of_points(
        lambda w, b, scale: DropoutLayer(w, b, scale, torch.tensor([0.1, 0.3, 0.5]))
    ),
}


def trained(make, settings, *, compiled):
    """Parameters, moments and the noise after training."""
    data, net = lane_data(POINTS), make()
    noise = NoisePrecision(data.points, (1.0, 1e-3))
    rates = torch.tensor([1e-2, 1e-3, 3e-3])
    weights = torch.tensor([1.0, 0.3, 5.0])
    adam = fit(net, noise, data, rates, settings, kl_weights=weights, compiled=compiled)
    return {
        "parameters": net.parameters,
        "first": adam.first,
        "second": adam.second,
        "rate": noise.rate,
        "steps": torch.tensor(adam.steps),
    }


@pytest.mark.parametrize(
    "settings",
    # One tile of rows and several; one chunk of steps and several, the last one not whole.
    [FitSettings(70, 16), FitSettings(20, 290), FitSettings(20, 140, train_samples=3)],
    ids=str,
)
@pytest.mark.parametrize("name", NETWORKS)
def test_lanes_end_where_they_do_in_pytorch(name, settings):
    make = NETWORKS[name]
    found, expected = (trained(make, settings, compiled=compiled) for compiled in (True, False))
    start = make().parameters
    for what, value in expected.items():
        torch.testing.assert_close(found[what], value, rtol=2e-3, atol=2e-5, msg=what)
    moved = (expected["parameters"] - start).abs()
    off = (expected["parameters"] - found["parameters"]).abs()
    assert off.max() < 1e-2 * moved.max()


def test_a_lane_that_diverges_leaves_the_others_alone():
    settings = FitSettings(30, 16)

    def one_lost():
        net = network()
        net.parameters[1] = math.nan
        return net

    alone, beside = (
        trained(make, settings, compiled=True)["parameters"] for make in (network, one_lost)
    )
    assert beside[1].isnan().all()
    assert torch.equal(beside[0], alone[0])
    assert torch.equal(beside[2], alone[2])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_library_has_these_layers(name):
    net, data = NETWORKS[name](), lane_data(POINTS)
    adam = LaneAdam(net.parameters, torch.ones(3))
    noise = NoisePrecision(data.points, (1.0, 1e-3))
    assert CompiledLanes.of(net, adam, noise, data, torch.ones(3), 0.01) is not None
    # ... and one that it does not have keeps all of them in PyTorch.
    net.layers[-1].compiled = lambda: None
    assert CompiledLanes.of(net, adam, noise, data, torch.ones(3), 0.01) is None
