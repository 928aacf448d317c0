import sys
from functools import partial

import pytest
import torch
from avalanche.training import Naive

from benchmarks.speed import peers
from benchmarks.speed.plain_avalanche import (
    LoaderLoop,
    PlainBayesianLinear,
    PlainVCL,
    second_task,
)
from benchmarks.speed.training import InMemoryLoop, Training, floor, number_of_weights


@pytest.fixture
def ours(tiny):
    keys = {"epochs": 2, **tiny.sizes.recipe}
    return Training("gaussian-vcl", keys, tiny.images, tiny)


@pytest.fixture
def no_packages(monkeypatch):
    for package in ("bayesian_torch", "torch_uncertainty", "tyxe"):
        monkeypatch.setitem(sys.modules, package, None)


def test_packages_that_are_missing_are_named_and_the_others_measured(tiny, no_packages):
    result = peers.measure(tiny)
    assert result.notes[1:] == [
        f"{package}: not installed: pip install 'vcl-radial[bench]'"
        for package in ("bayesian-torch", "torch-uncertainty", "TyXe")
    ]
    plain = ["DataLoader and plain loop", "Avalanche's Naive"]
    bayesian = ["gaussian-vcl", "VCL by layer on Avalanche"]
    assert list(dict.fromkeys(r.variant for r in result.rows)) == ["naive", *plain, *bayesian]


def test_a_package_that_is_there_is_compared_with_ours(tiny, no_packages, monkeypatch):
    monkeypatch.setitem(peers.PACKAGES, "bayesian-torch", lambda ours: floor(ours).train)
    ratios = [r for r in peers.measure(tiny).rows if r.metric.startswith("ratio")]
    of_package = [r for r in ratios if r.variant == "bayesian-torch"]
    assert [r.metric for r in of_package] == ["ratio to naive", "ratio to gaussian-vcl"]
    for ratio in of_package:
        assert 0 < ratio.low <= ratio.median <= ratio.high
        assert ratio.repeats == tiny.repeats


def test_a_loader_gives_the_images_and_labels_of_our_task_once_an_epoch(tiny, ours):
    loop = LoaderLoop(ours, tiny.images)
    batches = list(loop.batches())
    assert [len(y) for _, y in batches] == [16] * 4
    x, y = (torch.cat(columns) for columns in zip(*batches, strict=True))
    rows = torch.cdist(x, loop.x).argmin(1)
    assert len(rows.unique()) == len(rows)
    assert torch.equal(y, loop.y[rows])
    # Centred alike, but by all images instead of those of training.
    assert (x - loop.x[rows]).square().mean() < 1e-3


@pytest.mark.parametrize(("strategy", "per_weight"), [(Naive, 1), (PlainVCL, 2)])
def test_a_strategy_of_stock_avalanche_trains_the_network_that_ours_has(
    tiny, ours, strategy, per_weight
):
    layer = torch.nn.Linear if strategy is Naive else partial(PlainBayesianLinear, rho=-6.0)
    made = []

    def make(**settings):
        made.append(strategy(**settings))
        return made[0]

    train = second_task(make, layer, ours, tiny.images, "cpu")
    network = made[0].model
    before = [p.detach().clone() for p in network.body.parameters()]
    train()
    after = list(network.body.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    tasks = ours.run.tasks
    weights = sum(p.numel() for p in network.parameters())
    assert weights == per_weight * number_of_weights(ours.layers, tasks)


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
