"""Closed form where it serves, plain autograd where it must: the same course of training."""

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.training.plugins import EvaluationPlugin
from torch.optim import SGD, Adam

from vcl_radial import native
from vcl_radial.native import step
from vcl_radial.nn import MLP, ClosedFormGradients, VariationalWeights
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.strategies.vcl import VCL


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch):
    """The compiled pass has a generator of its own; for once it is to draw what PyTorch draws."""
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())


class SeesGradients(SupervisedPlugin):
    """Counts the means and rhos whose gradient it finds."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def before_update(self, strategy, **kwargs):
        self.found |= {n for n, p in strategy.model.named_parameters() if p.grad is not None}


class OwnPenalty(VCL):
    """As VCL, but with a penalty that only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


def trained(method, network, stream, benchmark, make_optimizer=Adam, tasks=2, **settings):
    vcl = method(
        model=network,
        optimizer=lambda model: make_optimizer(model.parameters(), lr=1e-3),
        tensor_stream=stream,
        train_mb_size=64,
        train_epochs=2,
        evaluator=EvaluationPlugin(),
        **settings,
    )
    for task in range(tasks):
        torch.manual_seed(task)
        vcl.train(benchmark.train_stream[task], eval_streams=[])
    return vcl


def parameters(vcl):
    return torch.cat([p.detach().flatten() for p in vcl.model.parameters()])


@pytest.fixture
def closed_forms(monkeypatch):
    """How often a closed form was set up."""
    made = []
    start = ClosedFormGradients.__init__
    monkeypatch.setattr(
        ClosedFormGradients,
        "__init__",
        lambda self, network: (made.append(1), start(self, network))[1],
    )
    return made


@pytest.mark.parametrize("family", ["radial", "gaussian", "radial-eq44"])
@pytest.mark.parametrize("compiled", [True, False])
def test_the_course_of_training_is_that_of_autograd(
    family, compiled, make_network, scenario, closed_forms, monkeypatch
):
    multi_head, stream, benchmark = scenario
    plain = trained(OwnPenalty, make_network(family, multi_head), stream, benchmark)
    assert closed_forms == []
    if not compiled:
        monkeypatch.setattr(step, "library", lambda: None)
    closed = trained(VCL, make_network(family, multi_head), stream, benchmark)
    assert closed_forms == [1, 1]
    start = torch.cat([p.detach().flatten() for p in make_network(family, multi_head).parameters()])
    moved = (parameters(plain)[: len(start)] - start).abs().mean()
    assert (parameters(plain) - parameters(closed)).abs().mean() < 1e-3 * moved


def test_any_optimiser_is_served(make_network, multi_head_stream, multi_head_benchmark):
    ends = [
        parameters(trained(method, make_network(), multi_head_stream, multi_head_benchmark, SGD))
        for method in (OwnPenalty, VCL)
    ]
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-6)


def test_a_plugin_that_may_read_gradients_finds_them(
    make_network, multi_head_stream, multi_head_benchmark, closed_forms
):
    plugin = SeesGradients()
    vcl = trained(
        VCL, make_network(), multi_head_stream, multi_head_benchmark, tasks=1, plugins=[plugin]
    )
    assert closed_forms == []
    assert plugin.found == {
        name for name, _ in vcl.model.named_parameters() if "head" not in name or ".0." in name
    }
    without = trained(VCL, make_network(), multi_head_stream, multi_head_benchmark, tasks=1)
    assert closed_forms == [1]
    assert (parameters(vcl) - parameters(without)).abs().max() < 1e-3


class PullsMeans(SupervisedPlugin):
    """Adds to the loss as Avalanche's EWC and MAS plugins do."""

    def before_backward(self, strategy, **kwargs):
        means = [p for n, p in strategy.model.named_parameters() if n.endswith("mean")]
        strategy.loss += 10 * sum(mean.square().sum() for mean in means)


@pytest.mark.parametrize("make_optimizer", [Adam, SGD])
def test_what_a_plugin_adds_to_the_loss_counts(
    make_optimizer, make_network, multi_head_stream, multi_head_benchmark
):
    there = multi_head_stream, multi_head_benchmark, make_optimizer
    ends = [
        parameters(trained(method, make_network(), *there, plugins=[PullsMeans()]))
        for method in (OwnPenalty, VCL)
    ]
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-6)
    assert ends[1].norm() < parameters(trained(VCL, make_network(), *there)).norm()


class StepsShort(VCL):
    """Clips gradients that it wants to find."""

    def optimizer_step(self):
        gradients = [p for group in self.optimizer.param_groups for p in group["params"]]
        assert torch.nn.utils.clip_grad_norm_(gradients, 1e-9) > 0
        super().optimizer_step()


class StandsStill(VCL):
    """Throws its gradients away."""

    def backward(self):
        super().backward()
        self.optimizer.zero_grad()


@pytest.mark.parametrize("method", [StepsShort, StandsStill])
def test_a_step_of_a_subclasss_own_is_taken(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    start = make_network()
    ends = trained(method, make_network(), multi_head_stream, multi_head_benchmark, SGD, tasks=1)
    same = dict(ends.network.named_parameters())
    for name, parameter in start.named_parameters():
        torch.testing.assert_close(same[name], parameter, rtol=0, atol=1e-7)


@pytest.mark.parametrize("loss_value", [True, False])
def test_the_kls_value_is_in_the_loss_if_asked_for(
    loss_value, make_network, multi_head_stream, multi_head_benchmark
):
    losses = []

    class KeepsLoss(SupervisedPlugin):
        def after_training_epoch(self, strategy, **kwargs):
            losses.append(strategy.loss.item())

    trained(
        VCL,
        make_network(),
        multi_head_stream,
        multi_head_benchmark,
        tasks=1,
        loss_value=loss_value,
        penalty_weight=1e6,
        plugins=[KeepsLoss()],
    )
    assert losses
    assert all((loss > 1000) == loss_value for loss in losses)


def test_weights_that_are_not_all_in_blocks_are_left_to_autograd(
    make_network, multi_head_stream, multi_head_benchmark, closed_forms
):
    """Else the KL of a radial and directional posterior's directions would be lost in silence."""
    network = MLP(64, 2, hidden=(8,), posterior=RDPSettings("row"))
    trained(VCL, network, multi_head_stream, multi_head_benchmark, tasks=1)
    assert closed_forms == []


def test_after_training_the_layers_have_their_draws_back(
    make_network, multi_head_stream, multi_head_benchmark
):
    vcl = trained(VCL, make_network(), multi_head_stream, multi_head_benchmark, tasks=1)
    layers = [module for module in vcl.model.modules() if isinstance(module, VariationalWeights)]
    assert layers
    assert all(layer.sampler is None for layer in layers)
    x = multi_head_stream.inputs(0, "train")[:5]
    vcl.network(x, 0).sum().backward()
    assert layers[0].blocks[0].rho.grad is not None
