import sys
from functools import partial

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training import Naive

from benchmarks.speed import peers
from benchmarks.speed.plain_avalanche import PlainBayesianLinear, PlainVCL, second_task
from benchmarks.speed.training import InMemoryLoop, Training, floor
from vcl_radial.posteriors import Gaussian


@pytest.fixture
def ours(tiny):
    return Training("gaussian-vcl", {"epochs": 2, **tiny.sizes.recipe}, tiny)


def test_a_missing_package_is_named_and_the_others_are_measured(tiny, monkeypatch, capsys):
    for package in ("bayesian_torch", "torch_uncertainty", "tyxe"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(peers.PACKAGES, "bayesian-torch", lambda ours: floor(ours).train)
    rows = peers.measure(tiny)
    missing = [line.split(":")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert missing == ["torch-uncertainty", "TyXe"]
    names = {"naive", "gaussian-vcl", "Avalanche's Naive", "VCL by layer on Avalanche"}
    assert {r.variant for r in rows} == {*names, "bayesian-torch"}


@pytest.mark.parametrize(("strategy", "per_weight"), [(Naive, 1), (PlainVCL, 2)])
def test_stock_avalanche_trains_our_network_on_our_images_in_batches_of_our_sizes(
    tiny, ours, strategy, per_weight
):
    layer = torch.nn.Linear if strategy is Naive else partial(PlainBayesianLinear, rho=-6.0)
    made, seen = [], []

    class Batches(SupervisedPlugin):
        def before_forward(self, strategy, **kwargs) -> None:
            seen.append((strategy.mb_x.flatten(1).clone(), strategy.mb_y.clone()))

    def make(**settings):
        made.append(strategy(**settings, plugins=[Batches()]))
        return made[0]

    train = second_task(make, layer, ours, tiny)
    network = made[0].model
    before = [p.detach().clone() for p in network.parameters()]
    train()
    assert all(not torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    loop = floor(ours)
    weights = sum(p.numel() for p in loop.network.parameters())
    assert sum(p.numel() for p in network.parameters()) == per_weight * weights
    assert [len(y) for _, y in seen] == [16] * (4 * ours.recipe.epochs)
    x, y = (torch.cat(columns) for columns in zip(*seen[:4], strict=True))
    distances, rows = torch.cdist(x, loop.x).min(1)
    assert distances.max() < 0.5  # two noise images are some 40 apart
    assert len(rows.unique()) == len(rows)
    assert torch.equal(y, loop.y[rows])


def test_the_plain_layer_has_the_gaussian_kl_to_a_standard_normal():
    layer = PlainBayesianLinear(3, 2, rho=0.3)
    posterior = Gaussian(layer.mean, torch.nn.functional.softplus(layer.rho))
    prior = Gaussian(torch.zeros(2, 4), torch.ones(2, 4))
    torch.testing.assert_close(layer.kl(), posterior.kl(prior).sum())


@pytest.mark.parametrize("package", ["bayesian-torch", "torch-uncertainty", "TyXe"])
def test_a_package_trains_two_numbers_for_each_weight_of_our_network(ours, package, monkeypatch):
    modules = {"bayesian-torch": "bayesian_torch", "torch-uncertainty": "torch_uncertainty"}
    pytest.importorskip(modules.get(package, "tyxe"))
    loops = []

    class Loop(InMemoryLoop):
        def __init__(self, *settings) -> None:
            super().__init__(*settings)
            loops.append(self)

    monkeypatch.setattr(peers, "InMemoryLoop", Loop)
    peers.PACKAGES[package](ours)()
    if package == "TyXe":
        import pyro

        parameters = pyro.get_param_store().values()
    else:
        parameters = loops[0].network.parameters()
    weights = sum(p.numel() for p in floor(ours).network.parameters())
    assert sum(p.numel() for p in parameters) == 2 * weights
