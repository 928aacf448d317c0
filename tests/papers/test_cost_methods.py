import pytest
import torch
from torch import nn

from reports.analysis import cost_methods
from reports.analysis.cost_methods import (
    ENSEMBLE,
    MC_DROPOUT,
    METHODS,
    MFVI,
    RADIAL,
    SGLD,
    K,
    Member,
    convolutions,
    make,
    predict,
    values_of_a_weight,
)
from vcl_radial.nn import PosteriorSettings, posterior_blocks


@pytest.fixture
def images(monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(cost_methods, "BATCH", 2)
    return torch.randn(4, 1, 28, 28), torch.randint(10, (4,))


def test_what_is_stored_is_what_the_posteriors_hold(images):
    weights = 9 * 32 + 32 + 9 * 32 * 64 + 64 + 9 * 64 * 64 + 64 + 576 * 10 + 10
    for method, family in ((RADIAL, "radial"), (MFVI, "gaussian")):
        blocks = posterior_blocks(convolutions(PosteriorSettings(family)), [0])
        numbers = sum(block.mean.numel() + block.rho.numel() for block in blocks)
        member = make(method, convolutions, *images)
        assert member.weights == weights
        assert member.stored == numbers / weights == 2
    stored = {method: make(method, convolutions, *images).stored for method in METHODS[2:]}
    assert stored == {MC_DROPOUT: 1, ENSEMBLE: K, SGLD: K}


@pytest.mark.parametrize("method", METHODS)
def test_an_epoch_moves_what_the_method_trains(method, images):
    member = make(method, convolutions, *images)
    before = [[p.clone() for p in network.parameters()] for network in member.networks]
    member.train()
    moved = [
        not all(map(torch.equal, old, network.parameters()))
        for old, network in zip(before, member.networks, strict=True)
    ]
    # A chain has one state that moves.
    assert moved == ([True] + [False] * (K - 1) if method == SGLD else [True] * len(moved))


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_is_a_mean_of_k_passes(method, images):
    x, _ = images
    member = make(method, convolutions, *images)
    calls = []
    for network in member.networks:
        network.register_forward_hook(lambda *_: calls.append(1))
    probabilities = predict(member, x).exp()
    assert len(calls) == K
    assert torch.allclose(probabilities.sum(-1), torch.ones(4), atol=1e-5)


def test_members_that_agree_predict_as_one(images):
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    alone = network(images[0]).log_softmax(-1)
    member = Member([network] * K, lambda: None, 7850)
    assert torch.allclose(predict(member, images[0]), alone, atol=1e-5)


def test_a_posterior_gives_every_draw_a_value_and_the_others_few(images):
    values = {m: values_of_a_weight(m, make(m, convolutions, *images), 60) for m in METHODS}
    assert values[RADIAL] == values[MFVI] == 60
    assert (values[MC_DROPOUT], values[ENSEMBLE], values[SGLD]) == (2, K, K)


def test_langevin_dynamics_samples_the_prior_where_there_are_no_points():
    torch.manual_seed(0)
    network = nn.Linear(1, 4000, bias=False)
    nn.init.constant_(network.weight, 3.0)
    nothing = (torch.zeros(1, 1), torch.zeros(1, dtype=torch.long))
    cost_methods._langevin_epoch(network, [nothing] * 200, points=0, step=0.1)
    weights = network.weight.detach()
    # w' = (1 - h/2) w + sqrt(h) z has the variance 1 / (1 - h/4) at rest.
    assert float(weights.mean()) == pytest.approx(0, abs=0.07)
    assert float(weights.var()) == pytest.approx(1 / (1 - 0.1 / 4), rel=0.1)
