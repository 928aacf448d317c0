import copy
from itertools import pairwise

import pytest
import torch
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.fundus import check_memory, estimate_memory, memory
from vcl_radial.nn import BayesianLinear, ClosedFormGradients, PosteriorSettings
from vcl_radial.nn.convert import to_bayesian
from vcl_radial.nn.vgg import VGG

FLOAT = 4


def test_weights_are_counted_with_gradients_and_the_optimisers_state():
    network = nn.Linear(100, 50)
    numbers = 100 * 50 + 50
    for optimizer, copies in (("sgd", 2), ("sgd-momentum", 3), ("adam", 4), ("amsgrad", 5)):
        found = estimate_memory(network, (100,), 8, optimizer=optimizer)
        assert found.weights == copies * FLOAT * numbers
    network.weight.requires_grad_(False)
    found = estimate_memory(network, (100,), 8, optimizer="sgd")
    assert found.weights == FLOAT * (numbers + 50)


def test_a_posterior_has_means_scales_and_a_prior():
    found = estimate_memory(BayesianLinear(100, 50), (100,), 8, optimizer="sgd")
    assert found.weights == 6 * FLOAT * (100 * 50 + 50)


def test_activations_are_what_autograd_saves():
    """Of a layer its input; of ReLU, done in place, what the next layer saves anyway."""
    widths, batch = (30, 40, 50, 2), 16
    layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
    network = nn.Sequential(layers[0], nn.ReLU(True), layers[1], nn.ReLU(True), layers[2])
    found = estimate_memory(network, (30,), batch)
    assert found.activations == FLOAT * batch * (30 + 40 + 50)


def test_activations_grow_with_batch_area_and_samples_and_weights_do_not():
    network = VGG(4)

    def activations(size, batch, samples=1):
        return estimate_memory(network, (3, size, size), batch, samples=samples)

    one = activations(32, 4)
    draws = 2 * one.activations - activations(32, 8).activations
    assert 0 < draws < one.activations
    of_images = one.activations - draws
    assert activations(32, 12).activations - draws == 3 * of_images
    # Features and logits do not grow with the area.
    assert activations(64, 4).activations - draws == pytest.approx(4 * of_images, rel=0.02)
    assert activations(64, 12).weights == one.weights
    assert activations(32, 4, samples=3).activations == 3 * one.activations


def test_bfloat16_is_bounded_by_float32():
    exact, rough = (
        estimate_memory(VGG(4, posterior="radial", precision=precision), (3, 32, 32), 4)
        for precision in ("float32", "bfloat16")
    )
    assert rough == exact


@pytest.mark.parametrize("family", ["gaussian", "radial", "radial-eq44", "rdp", None])
def test_nothing_is_changed_and_nothing_drawn_from_the_global_generator(family):
    network = VGG(2, posterior=family, dropout=0.5)
    before = copy.deepcopy(network.state_dict())
    state = torch.get_rng_state()
    first = estimate_memory(network, (3, 32, 32), 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert estimate_memory(network, (3, 32, 32), 2) == first
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]) if torch.is_tensor(value) else value == before[name]
    assert network(torch.randn(1, 3, 32, 32)).isfinite().all()
    assert all(p.grad is None for p in network.parameters())


def test_normalisation_layers_keep_their_statistics():
    network = to_bayesian(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)))
    before = copy.deepcopy(network[1].state_dict())
    estimate_memory(network, (3, 8, 8), 4)
    assert all(torch.equal(v, before[k]) for k, v in network[1].state_dict().items())


def test_layers_whose_draws_are_taken_over_get_them_back():
    network = VGG(2)
    over = ClosedFormGradients(network)
    samplers = [m.sampler for m in network.modules() if hasattr(m, "sampler")]
    estimate_memory(network, (3, 32, 32), 2)
    assert [m.sampler for m in network.modules() if hasattr(m, "sampler")] == samplers
    assert all(sampler is not None for sampler in samplers)
    over.release()


def test_the_estimate_holds_what_a_step_holds():
    """Against the bytes of the tensors that autograd holds in a real step."""
    network = VGG(8, posterior=PosteriorSettings("gaussian"))
    x = torch.randn(8, 3, 32, 32)
    known = {t.untyped_storage()._cdata for t in (*network.parameters(), *network.buffers())}
    held = {}

    def pack(tensor):
        held[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(x).sum()
    saved = sum(t.untyped_storage().nbytes() for k, t in held.items() if k not in known)
    found = estimate_memory(network, (3, 32, 32), 8)
    # The KL's share comes on top: a few numbers for each weight.
    weights = sum(p.numel() for p in network.parameters()) // 2
    assert saved <= found.activations <= saved + 20 * FLOAT * weights


def test_a_run_that_does_not_fit_is_refused_in_one_line(monkeypatch):
    found = estimate_memory(VGG(16), (3, 512, 512), 64)
    monkeypatch.setattr(memory, "free_memory", lambda device: 10**9)
    with pytest.raises(UserError) as refused:
        check_memory(found, "cpu")
    line = str(refused.value)
    assert line.startswith(f"this run needs about {found.total / 1e9:.2f} GB (activations ")
    assert "cpu has 1.00 GB free: choose a smaller batch_size" in line
    assert "\n" not in line
    monkeypatch.setattr(memory, "free_memory", lambda device: found.total)
    check_memory(found, "cpu")
    monkeypatch.setattr(memory, "free_memory", lambda device: None)
    check_memory(found, "cpu")


def test_data_on_the_device_and_a_margin_are_in_the_total():
    without = estimate_memory(VGG(2), (3, 32, 32), 2)
    with_data = estimate_memory(VGG(2), (3, 32, 32), 2, resident=10**9)
    assert with_data.total - without.total == pytest.approx(1.25e9, rel=1e-6)


def test_what_is_free_is_read_from_the_machine(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2048 kB\n")
    assert memory._available(tmp_path / "meminfo") == 2048 * 1024
    assert memory._available(tmp_path / "none") is None
    assert memory._container_limit(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("300\n")
    assert memory._container_limit(tmp_path) == 700
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container_limit(tmp_path) is None
    assert memory.free_memory("meta") is None


def test_an_unknown_optimiser_is_refused():
    with pytest.raises(UserError, match="optimizer = 'lion' is none of sgd, sgd-momentum, adam"):
        estimate_memory(VGG(2), (3, 32, 32), 2, optimizer="lion")
