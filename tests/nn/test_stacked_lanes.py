"""Lanes are the networks that they are made of, and a step of theirs is a step of Adam in each."""

import copy
from functools import partial

import pytest
import torch

from vcl_radial import native
from vcl_radial.errors import UserError
from vcl_radial.nn import MLP, PosteriorSettings, consolidate, kl_divergence, variational_weights
from vcl_radial.nn.blocks import softplus
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.lane_step import LaneSettings, LaneStep
from vcl_radial.nn.lanes import Lanes
from vcl_radial.nn.rdp import RDPSettings, RDPWeights, angles_of_key
from vcl_radial.posteriors.rdp import RDPNoise

LANES, POINTS = 3, 40
PRECISION, FACTORS, KEEP = (1.0, 4.0, 0.25), (0.1, 0.2, 0.3), (0.9, 0.7, 0.5)


def mlp(lane, **settings):
    torch.manual_seed(lane)
    return MLP(4, 1, hidden=(5, 3), multi_head=False, **settings)


def drawn(family, group_by="layer", carried=False):
    def make(lane):
        scale = (1.0, 0.5, 2.0)[lane]
        posterior = PosteriorSettings(family, group_by, initial_noise=0.2, prior_scale=scale)
        network = mlp(lane, posterior=posterior)
        return moved(network) if carried else network

    return make


def moved(network):
    consolidate(network, [0])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return network


def rdp(lane, carried=False):
    network = mlp(lane, posterior=RDPSettings("double", 0.05, 0.5), point_heads=True)
    network = to_bayesian(network, PosteriorSettings("gaussian", initial_noise=0.05))
    return moved(network) if carried else network


NETWORKS = {
    "gaussian": drawn("gaussian"),
    "radial": drawn("radial"),
    "radial-eq44": drawn("radial-eq44"),
    "gaussian unit": drawn("gaussian", "unit"),
    "radial tensor": drawn("radial", "tensor"),
    "carried gaussian": drawn("gaussian", carried=True),
    "carried radial": drawn("radial", "unit", carried=True),
    "rdp": rdp,
    "carried rdp": lambda lane: rdp(lane, carried=True),
    "points": lambda lane: mlp(lane, posterior=None),
    "dropout": lambda lane: mlp(lane, posterior=None, dropout=1 - KEEP[lane]),
    "point heads": lambda lane: mlp(lane, posterior="radial", point_heads=True),
}


def generators(first=0):
    return [torch.Generator().manual_seed(first + lane) for lane in range(LANES)]


def groups_of(q, factors, normal, key):
    """An RDP's groups under given noise."""
    direction = q.direction
    groups, D = direction.mean_direction.shape
    angle = angles_of_key(groups, direction.concentration, D, key.item())
    return q.at(RDPNoise(factors, angle, normal.clone()))


def one(noise, lane, sample):
    """The noise of one draw of a lane."""
    blocks, masks, factors = noise
    parts = [[t[lane, sample] for t in part] for part in (blocks, masks)]
    return *parts, [[t[lane, sample] for t in factor] for factor in factors]


def with_draws(network, noise, masks, factors):
    """The network, which takes draws of this noise, differentiable in its parameters."""
    of_blocks, of_factors = iter(noise), iter(factors)

    def draw(layer):
        blocks = [b.mean + softplus(b.rho) * next(of_blocks) for b in layer.posterior_blocks()]
        if not isinstance(layer, RDPWeights):
            return layer.split(blocks)
        factors = {
            name: groups_of(block.posterior, *next(of_factors))
            for name, block in layer.factor_blocks().items()
        }
        return layer.join(factors), blocks[0][0]

    for layer in variational_weights(network, [0]):
        layer.sampler = partial(draw, layer)
    for dropout, mask in zip(network.dropout, masks, strict=True):
        dropout.mask = mask
    return network


def squares(outputs, y):
    return (outputs.squeeze(-1) - y).square().mean(1)


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_is_that_of_adam_in_each_network_by_itself(name, compiled, samples, monkeypatch):
    """Autograd through draws and KL, with PyTorch's Adam; three steps with rates that change."""
    if not compiled:
        monkeypatch.setattr(native.step, "library", lambda: None)
    single = [NETWORKS[name](lane) for lane in range(LANES)]
    lanes, x, y = Lanes(copy.deepcopy(single), 0), torch.randn(POINTS, 4), torch.randn(POINTS)
    precision = {p: torch.tensor(PRECISION) for p in lanes.points if p != "head.output.bias"}
    settings = [LaneSettings(1e-2, 1e-2, factor) for factor in FACTORS]
    step = LaneStep(
        lanes,
        settings,
        generators(),
        x,
        y,
        samples=samples,
        loss=squares,
        prior_precision=precision,
    )
    optimizers = [torch.optim.Adam(network.parameters(), lr=1e-2) for network in single]
    for share in (1.0, 1.0, 0.5):
        noise = lanes.noise(samples, 8, generators(100))
        rows = torch.randint(POINTS, (LANES, 8))
        step.scale_rates([share] * LANES)
        losses = step(rows, noise)
        for lane, (network, optimizer) in enumerate(zip(single, optimizers, strict=True)):
            outputs = []
            for s in range(samples):
                outputs.append(with_draws(network, *one(noise, lane, s))(x[rows[lane]]))
            loss = torch.stack([squares(f[None], y[rows[lane]])[0] for f in outputs]).mean()
            named = dict(network.named_parameters())
            prior = sum(PRECISION[lane] / 2 * named[p].square().sum() for p in precision)
            optimizer.param_groups[0]["lr"] = 1e-2 * share
            optimizer.zero_grad()
            (loss + FACTORS[lane] * (kl_divergence(network, [0]) + prior)).backward()
            optimizer.step()
            torch.testing.assert_close(losses[lane], loss.detach(), rtol=1e-3, atol=1e-5)
    lanes.write_back()
    for found, network in zip(lanes.networks, single, strict=True):
        for parameter, expected in zip(found.parameters(), network.parameters(), strict=True):
            torch.testing.assert_close(parameter, expected, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_functions_are_those_of_each_lanes_network_and_draw(name):
    lanes, x = Lanes([NETWORKS[name](lane) for lane in range(LANES)], 0), torch.randn(LANES, 7, 4)
    f = torch.cat([*lanes.functions(x, 4, generators())])
    assert f.shape == (4, LANES, 7, 1)
    again = torch.cat([*lanes.functions(x, 4, generators())])
    assert torch.equal(f, again)
    if name in ("points", "point heads"):
        return
    if lanes.factors:  # what is random in them is drawn after the blocks' noise
        assert (f.std(0) > 0).any()
        return
    noise = lanes.noise(4, 1, generators())
    for lane, network in enumerate(lanes.networks):
        for s in range(4):
            expected = with_draws(network, *one(noise, lane, s))(x[lane])
            torch.testing.assert_close(f[s, lane], expected.detach(), rtol=1e-4, atol=1e-5)


def test_points_have_one_function_whatever_the_number_of_draws():
    lanes, x = Lanes([NETWORKS["points"](lane) for lane in range(LANES)], 0), torch.randn(3, 7, 4)
    (f,) = lanes.functions(x, 4, generators())
    for lane, network in enumerate(lanes.networks):
        torch.testing.assert_close(f[:, lane], network(x[lane]).detach().expand(4, 7, 1))


@pytest.mark.parametrize("name", ["rdp", "dropout", "radial"])
def test_a_lanes_functions_are_the_same_to_the_last_bit_whoever_is_beside_it(name):
    networks, x = [NETWORKS[name](lane) for lane in range(LANES)], torch.randn(LANES, 7, 4)
    together = torch.cat([*Lanes(networks, 0).functions(x, 9, generators())])
    alone = torch.cat([*Lanes(networks[1:2], 0).functions(x[1:2], 9, generators(first=1)[:1])])
    assert torch.equal(together[:, 1], alone[:, 0])


def test_lanes_of_an_rdp_have_one_prior():
    networks = [
        mlp(0, posterior=RDPSettings("double", 0.05, gamma), point_heads=True)
        for gamma in (0.5, 0.6)
    ]
    with pytest.raises(ValueError, match="one half-Cauchy prior"):
        Lanes(networks, 0)


@pytest.mark.parametrize("family", ["low-rank", "radial-low-rank"])
def test_lanes_of_low_rank_are_refused(family):
    networks = [mlp(lane, posterior=PosteriorSettings(family)) for lane in range(2)]
    with pytest.raises(UserError, match=f"'{family}'.* no lanes: train its networks one by one"):
        Lanes(networks, 0)


@pytest.mark.parametrize("name", ["gaussian", "radial", "carried rdp", "points"])
def test_the_first_lanes_step_as_they_do_with_all(name):
    steps = []
    for active in (2, LANES):
        networks = [NETWORKS[name](lane) for lane in range(LANES)]
        torch.manual_seed(5)
        lanes, x, y = Lanes(networks, 0), torch.randn(POINTS, 4), torch.randn(POINTS)
        precision = {p: torch.tensor(PRECISION) for p in lanes.points}
        settings = [LaneSettings(1e-2, 1e-2, factor) for factor in FACTORS]
        step = LaneStep(
            lanes,
            settings,
            generators(),
            x,
            y,
            samples=1,
            loss=squares,
            prior_precision=precision,
        )
        step(torch.arange(24).view(LANES, 8)[:active])
        steps.append(torch.cat([p.reshape(LANES, -1) for p in step.adam.parameters], dim=1))
    some, every = steps
    torch.testing.assert_close(some[:2], every[:2], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(some[2], every[2])
