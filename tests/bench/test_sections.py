import io
import json
import sys

import pytest
import torch

from vcl_radial.bench import kl, memory, peers
from vcl_radial.bench.data import noise
from vcl_radial.bench.training import (
    TWO_TASKS,
    InMemoryLoop,
    Training,
    number_of_weights,
    perceptron,
)
from vcl_radial.streams import load_dataset


@pytest.fixture
def no_packages(monkeypatch):
    for package in ("bayesian_torch", "torch_uncertainty"):
        monkeypatch.setitem(sys.modules, package, None)


def test_packages_that_are_not_there_are_told_of_and_the_others_measured(tiny, no_packages):
    result = peers.measure(tiny)
    assert result.notes == [
        "bayesian-torch: not installed: pip install 'vcl-radial[bench]'",
        "torch-uncertainty: not installed: pip install 'vcl-radial[bench]'",
    ]
    assert {r.variant for r in result.rows} == {"gaussian-vcl", "per layer, stock Avalanche"}


def test_a_package_that_is_there_is_compared_with_ours(tiny, no_packages, monkeypatch):
    def loop(ours: Training) -> InMemoryLoop:
        return InMemoryLoop(perceptron([torch.nn.Linear(*s) for s in ours.layers]), ours)

    monkeypatch.setitem(peers.PACKAGES, "bayesian-torch", loop)
    result = peers.measure(tiny)
    (ratio,) = [r for r in result.rows if (r.variant, r.metric[:5]) == ("bayesian-torch", "ratio")]
    assert 0 < ratio.low <= ratio.median <= ratio.high
    assert ratio.repeats == 2


@pytest.mark.parametrize("D", [100, 900])
def test_the_kl_draws_nothing(D):
    work = kl._work(D, "cpu")
    state = torch.get_rng_state()
    first, second = work["value"](), work["value"]()
    work["gradient alone"]()
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("D", [100, 900])
def test_the_forward_pass_beside_the_kl_has_as_many_weights(D):
    assert kl._work(D, "cpu")[kl.FORWARD]().shape == (kl.BATCH, D**0.5)


@pytest.mark.parametrize(
    ("method", "multiples"),
    [
        # parameters, gradients, prior, and AMSGrad's three per parameter
        ("radial-vcl", {"parameters": 2, "gradients": 2, "prior": 2, "optimiser": 6}),
        ("naive", {"parameters": 1, "gradients": 1, "prior": 0, "optimiser": 3}),
    ],
)
def test_what_a_training_holds_is_what_its_method_needs(tiny, method, multiples):
    keys = {**tiny.sizes.recipe, "epochs": 2, "hidden": [50]}
    training = Training(method, keys, tiny.images, "cpu", tiny.clock)
    training.train()
    weights = number_of_weights(training.layers, heads=2)
    found = memory.state_bytes(training.strategy)
    # At most: gradients or moments of the other task's head need not be there.
    for kind, multiple in multiples.items():
        assert found[kind] / (4 * weights) <= multiple + 0.01, kind
    assert found["parameters"] == 4 * weights * multiples["parameters"]


def test_memory_that_is_shared_counts_once():
    flat, counted = torch.zeros(10), set()
    assert memory._bytes([flat[:5], flat[5:], torch.zeros(3)], counted) == 40 + 12
    assert memory._bytes([flat[:5]], counted) == 0


def test_the_peak_of_a_large_network_is_above_what_it_holds(tiny):
    if memory._of_this_process("VmHWM") is None:
        pytest.skip("only Linux tells of a process's peak")
    keys = {**tiny.sizes.recipe, "epochs": 2, "hidden": [2000, 2000]}
    found = memory.probe("naive", keys, tiny.images, "cpu")
    assert found["peak above the start"] > 0.8 * found["all of these"] > 4 * found["weights"]


def test_a_fresh_process_answers_an_order_as_this_one_would(tiny, monkeypatch, capsys):
    images = noise(tiny.scratch / "growth", 4, 16, 1)
    keys = {**tiny.sizes.recipe, "epochs": 2, **TWO_TASKS}
    order = {
        "method": "naive",
        "keys": keys,
        "device": "cpu",
        "images": {"dataset": images.dataset, "folder": str(images.folder)},
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(order)))
    memory._main()
    answered = json.loads(capsys.readouterr().out)
    here = memory.probe("naive", keys, images, "cpu")
    kinds = ("weights", "parameters", "gradients", "prior", "optimiser")
    assert [answered[kind] for kind in kinds] == [here[kind] for kind in kinds]


def test_noise_is_a_data_set_with_so_many_images_of_each_class(tmp_path):
    images = noise(tmp_path, 200, 3, 2)
    data = load_dataset(images.dataset, images.folder)
    assert data.train_x.shape == (600, 28, 28)
    assert data.train_y.bincount().tolist() == [3] * 200
    assert data.test_y.bincount().tolist() == [2] * 200
