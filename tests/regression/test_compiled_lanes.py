"""The compiled steps are those that PyTorch makes."""

import math

import pytest
import torch
from regression_helpers import generators, lane_data, mlp, networks
from regression_helpers import trained as train

from vcl_radial import native
from vcl_radial.likelihoods.noise_precision import NoisePrecision
from vcl_radial.nn.carry import consolidate, posterior_blocks
from vcl_radial.nn.compiled_lanes import CompiledLanes
from vcl_radial.nn.lane_step import LaneSettings, LaneStep
from vcl_radial.nn.lanes import Lanes, point_estimates
from vcl_radial.nn.rdp import RDPSettings

pytestmark = pytest.mark.skipif(native.unavailable() is not None, reason=str(native.unavailable()))

POINTS = 300, 310, 290


def of_points(*rates):
    return lambda: [
        mlp(k, hidden=(7, 6), posterior=None, dropout=rate) for k, rate in enumerate(rates)
    ]


def after_a_task(networks):
    for network in networks:
        consolidate(network, [0])
    return networks


def carried(family, group_by):
    return lambda: after_a_task(networks(family, group_by=group_by, noise=0.2))


def rdp(grouping, is_carried):
    settings = RDPSettings(grouping, 0.05, 0.5, 0.9)

    def make():
        made = [mlp(k, posterior=settings, point_heads=True) for k in range(3)]
        return after_a_task(made) if is_carried else made

    return make


NETWORKS = {
    **{
        f"{family} {group_by}": lambda f=family, g=group_by: networks(f, group_by=g, prior=0.5)
        for family in ("gaussian", "radial", "radial-eq44")
        for group_by in ("layer", "tensor", "unit")
    },
    **{
        f"carried {family} {group_by}": carried(family, group_by)
        for family in ("gaussian", "radial", "radial-eq44")
        for group_by in ("layer", "unit")
    },
    **{
        f"{'carried ' if is_carried else ''}rdp {grouping}": rdp(grouping, is_carried)
        for grouping in ("row", "column", "double")
        for is_carried in (False, True)
    },
    "points": of_points(0, 0, 0),
    "dropout": of_points(0.1, 0.3, 0.5),
}


def trained(make, settings, *, compiled):
    """Parameters, moments and the noise after training."""

    def precision(lane, network):
        return dict.fromkeys(point_estimates(network, 0), torch.tensor([1.0, 4.0, 0.25][lane]))

    trainer = train(
        make(),
        lane_data(POINTS),
        [1e-2, 1e-3, 3e-3],
        **settings,
        kl_weight=[1.0, 0.3, 5.0],
        precision=precision,
        compiled=compiled,
    )
    adam = trainer.step.adam
    return {
        "parameters": joined(adam.parameters),
        "first": joined([first for first, _ in adam.moments]),
        "second": joined([second for _, second in adam.moments]),
        "rate": trainer.noise.rate,
        "steps": torch.tensor(adam.steps),
    }


def joined(tensors):
    return torch.cat([t.reshape(len(t), -1) for t in tensors], dim=1)


def start(lanes):
    blocks = [p for block in lanes.blocks for p in (block.mean, block.rho)]
    factors = [p for factor in lanes.factors for p in factor.parameters]
    return joined([*blocks, *factors, *lanes.points.values()])


# One tile of rows and several; one chunk of steps and several, the last one not whole.
MANY_STEPS, MANY_ROWS = {"steps": 70, "batch_size": 16}, {"steps": 12, "batch_size": 290}
SAMPLES = {"steps": 12, "batch_size": 140, "samples": 3}
RUNS = [
    *((name, SAMPLES) for name in NETWORKS),
    *((f"{family} layer", MANY_STEPS) for family in ("gaussian", "radial", "radial-eq44")),
    *((f"carried {family} unit", MANY_ROWS) for family in ("gaussian", "radial", "radial-eq44")),
    ("rdp double", MANY_ROWS),
    ("carried rdp row", MANY_STEPS),
    ("points", MANY_STEPS),
    ("dropout", MANY_ROWS),
    ("dropout", MANY_STEPS),
]


@pytest.mark.parametrize(("name", "settings"), RUNS, ids=str)
def test_lanes_end_where_they_do_in_pytorch(name, settings):
    make = NETWORKS[name]
    found, expected = (trained(make, settings, compiled=compiled) for compiled in (True, False))
    for what, value in expected.items():
        torch.testing.assert_close(found[what], value, rtol=2e-3, atol=2e-5, msg=what)
    moved = (expected["parameters"] - start(Lanes(make(), 0))).abs()
    off = (expected["parameters"] - found["parameters"]).abs()
    assert off.max() < 1e-2 * moved.max()


def test_a_lane_that_diverges_leaves_the_others_alone():
    settings = {"steps": 30, "batch_size": 16}

    def one_lost():
        made = networks()
        for block in posterior_blocks(made[1], [0]):
            block.mean.data.fill_(math.nan)
        return made

    alone, beside = (
        trained(make, settings, compiled=True)["parameters"] for make in (networks, one_lost)
    )
    assert beside[1].isnan().all()
    assert torch.equal(beside[0], alone[0])
    assert torch.equal(beside[2], alone[2])


def squares(outputs, y):
    return (outputs.squeeze(-1) - y).square().mean(1)


def step_of(lanes, rho_rate=1e-3):
    data, settings = lane_data(POINTS), [LaneSettings(1e-3, rho_rate, 1.0)] * 3
    return LaneStep(lanes, settings, generators(3), *data.table, samples=1, loss=squares)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_library_has_these_layers(name):
    noise = NoisePrecision(torch.tensor(POINTS), (1.0, 1e-3))
    assert CompiledLanes.if_supported(step_of(Lanes(NETWORKS[name](), 0)), noise) is not None


def test_what_the_library_has_not_stays_in_pytorch():
    noise = NoisePrecision(torch.tensor(POINTS), (1.0, 1e-3))
    assert CompiledLanes.if_supported(step_of(Lanes(networks(), 0), rho_rate=1e-2), noise) is None
