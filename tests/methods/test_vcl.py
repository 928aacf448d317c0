"""VCL: what it carries, and its closed form against autograd."""

import math

import pytest
import torch
from scenarios import ALL, Learner, copies, network
from torch.optim import SGD, Adam

from vcl_radial import native
from vcl_radial.methods.vcl import VCL
from vcl_radial.native import step
from vcl_radial.nn import (
    ClosedFormGradients,
    PointLinear,
    VariationalWeights,
    kl_divergence,
    variational_weights,
)
from vcl_radial.nn.rdp import RDPSettings

families = pytest.mark.parametrize("family", ["gaussian", "radial", "radial-eq44"])


class ByAutograd(VCL):
    """As VCL, but with a penalty that only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


@families
def test_the_posterior_becomes_the_prior(family):
    vcl = Learner(VCL, network(family)).train(0, 1)
    for weights in variational_weights(vcl.network, [0, 1]):
        for block in weights.blocks:
            torch.testing.assert_close(block.prior.mean, block.posterior.mean)
            torch.testing.assert_close(block.prior.scale, block.posterior.scale)
    assert kl_divergence(vcl.network, [0, 1]).item() == pytest.approx(0, abs=1e-3)


def copied(network):
    return copies(network) | {name: value.clone() for name, value in network.named_buffers()}


@pytest.mark.parametrize(
    "posterior", ["gaussian", "radial", "low-rank", "radial-low-rank", RDPSettings("row", 0.05)]
)
def test_a_restart_gives_back_the_noise_and_leaves_means_and_prior(posterior):
    vcl = Learner(VCL, network(posterior, multi_head=False, point_heads=True), restart=True)
    first = copied(vcl.network)
    vcl.train(0)
    after = copied(vcl.network)
    vcl.begin(1)
    for name, value in copied(vcl.network).items():
        noise = name.endswith((".rho", ".factor", ".log_concentration"))
        assert torch.equal(value, (first if noise else after)[name]), name
        assert not noise or not torch.equal(first[name], after[name])


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_expected_loss_does_not_depend_on_the_number_of_samples(family):
    """Means over many draws agree within four standard errors; the KL part is the same exactly."""

    def draws(samples, n):
        net = network(family, hidden=(8,), initial_noise=0.1)
        vcl = Learner(VCL, net, train_samples=samples, batch_size=ALL, epochs=n)
        vcl.method.step = lambda optimizer: None
        return torch.stack(vcl.train(0).losses).double()

    one, eight = draws(1, 240), draws(8, 60)
    error = math.sqrt(one.var() / len(one) + eight.var() / len(eight))
    assert abs(one.mean() - eight.mean()) < 4 * error
    # And more samples do mean less noise, or the comparison would say nothing.
    assert eight.std() < 0.6 * one.std()


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_the_kl_weight_tempers_the_kl(weight):
    none, some = (
        Learner(VCL, kl_weight=factor, loss_value=True).standing_loss(0) for factor in (0.0, weight)
    )
    fresh = network()
    fresh.head.adapt([0])
    points = len(Learner(VCL).points(0).y)
    expected = weight * kl_divergence(fresh, [0]) / points
    torch.testing.assert_close(some - none, expected, rtol=1e-4, atol=1e-4)


@pytest.fixture
def closed_forms(monkeypatch):
    """How often a closed form was set up; it draws what PyTorch draws, for once."""
    made, start = [], ClosedFormGradients.__init__
    monkeypatch.setattr(
        ClosedFormGradients, "__init__", lambda self, net: (made.append(1), start(self, net))[1]
    )
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())
    return made


@families
@pytest.mark.parametrize(
    ("optimizer", "compiled"), [(Adam, True), (Adam, False), (SGD, True)], ids=str
)
def test_the_course_of_training_is_that_of_autograd(
    family, optimizer, compiled, multi_head, closed_forms, monkeypatch
):
    settings = {"optimizer": optimizer, "batch_size": 64, "epochs": 2}
    start = network(family, multi_head)
    plain = Learner(ByAutograd, network(family, multi_head), **settings).train(0, 1)
    assert closed_forms == []
    if not compiled:
        monkeypatch.setattr(step, "library", lambda: None)
    closed = Learner(VCL, network(family, multi_head), **settings).train(0, 1)
    assert closed_forms == [1, 1]
    ends = plain.parameters()
    moved = max((ends[name] - w).abs().mean().item() for name, w in start.named_parameters())
    assert (plain.weights() - closed.weights()).abs().mean() < 1e-3 * moved


@pytest.mark.parametrize("case", ["gradients are read", "directions"])
def test_autograd_serves_where_a_closed_form_would_not(case, closed_forms):
    """Of an RDP it would lose the KL of the directions in silence."""
    net = network(RDPSettings("row") if case == "directions" else "radial", hidden=(8,))
    vcl = Learner(VCL, net)
    vcl.method.gradients_are_read = case != "directions"
    vcl.train(0)
    assert closed_forms == []


def test_after_training_the_layers_have_their_draws_back():
    vcl = Learner(VCL).train(0)
    layers = [module for module in vcl.network.modules() if isinstance(module, VariationalWeights)]
    assert layers
    assert all(layer.sampler is None for layer in layers)
    vcl.network(vcl.points(0).x[:5], 0).sum().backward()
    assert layers[0].blocks[0].rho.grad is not None


@pytest.mark.parametrize("loss_value", [True, False])
def test_the_kls_value_is_in_the_loss_if_asked_for(loss_value):
    vcl = Learner(VCL, kl_weight=1e6, loss_value=loss_value).train(0)
    assert all((loss > 1000) == loss_value for loss in vcl.losses)


def test_what_is_computed_anew_within_a_task_is_the_same():
    ends = []
    for forget in (True, False):
        vcl = Learner(VCL)
        vcl.train(0, after_step=vcl.method.forget_caches if forget else lambda: None)
        ends.append(vcl.weights())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-5)


def test_point_heads_leave_the_body_bayesian(multi_head):
    net = network("radial", multi_head, point_heads=True)
    head = net.head.head(0) if multi_head else net.head.output
    assert isinstance(head, PointLinear)
    assert torch.equal(kl_divergence(net, [0]), net.body[0].weights.kl())
    vcl = Learner(VCL, net)
    vcl.adapt(0)
    before = head.weight.clone()
    vcl.train(0)
    assert not torch.equal(head.weight, before)
    trained = head.weight.clone()
    vcl.train(1)
    assert torch.equal(head.weight, trained) is multi_head


def test_without_a_posterior_point_heads_change_nothing():
    networks = [network(None, point_heads=point_heads) for point_heads in (True, False)]
    first, second = (net.state_dict() for net in networks)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
