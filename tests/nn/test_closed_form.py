"""The closed-form gradient and the compiled pass, against plain autograd through the posteriors."""

from copy import deepcopy

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam

from vcl_radial import native
from vcl_radial.nn import (
    MLP,
    ClosedFormGradients,
    PosteriorBlock,
    PosteriorSettings,
    VariationalWeights,
    consolidate,
    kl_divergence,
    variational_weights,
)
from vcl_radial.nn.blocks import softplus
from vcl_radial.posteriors import Gaussian, families

FAMILIES = [name for name, family in families().items() if family.has_lanes]
STRETCHED = [("layer", False), ("tensor", False), ("unit", False), ("unit", True)]
"""Groupings, and whether the KL is stretched."""
N = 640

needs_compiler = pytest.mark.skipif(
    native.unavailable() is not None, reason=str(native.unavailable())
)


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch):
    """The compiled pass has a generator of its own; for once it is to draw what PyTorch draws."""
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())


def network(family, grouping, carried=True, dtype=torch.float64, stretched=False):
    """Task 1's head still has the initial prior where the body has a carried one.

    A stretch, where wanted, is of all blocks but one.
    """
    torch.manual_seed(0)
    settings = PosteriorSettings(family, grouping, initial_rho=-3.0)
    net = MLP(30, 3, hidden=(20, 10), posterior=settings)
    net.head.adapt([0, 1])
    net = net.to(dtype)
    if carried:
        consolidate(net, [0])
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        for block in blocks(net, [0, 1])[1:]:
            block.stretch = torch.rand_like(block.mean) * 3 if stretched else None
    return net


def batch(dtype):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(64, 30, dtype=dtype, generator=generator)
    return x, torch.randint(3, (64,), generator=generator)


def blocks(net, tasks):
    return [b for w in variational_weights(net, tasks) for b in w.posterior_blocks()]


def nll(net, samples, dtype):
    x, y = batch(dtype)
    return torch.stack([cross_entropy(net(x, 0), y) for _ in range(samples)]).mean()


def plain_steps(net, optimizer, steps, samples, dtype):
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        (nll(net, samples, dtype) + 0.7 * kl_divergence(net, [0, 1]) / N).backward()
        optimizer.step()


def closed_form_steps(net, optimizer, steps, samples, dtype):
    assert ClosedFormGradients.serves(net)
    closed_form = ClosedFormGradients(net)
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        nll(net, samples, dtype).backward()
        closed_form.before_step(optimizer, blocks(net, [0, 1]), 0.7 / N)
        optimizer.step()
    closed_form.release()


def course(
    steps, make_optimizer, family, grouping, carried, stretched, samples, dtype, n=20, frozen=None
):
    """Where all parameters are after some steps, and what they did not start with."""
    net = network(family, grouping, carried, dtype, stretched)
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(frozen is None or frozen not in name)
    start = torch.cat([p.detach().flatten() for p in net.parameters()])
    steps(net, make_optimizer(net.parameters()), n, samples, dtype)
    return start, torch.cat([p.detach().flatten() for p in net.parameters()])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("grouping", "stretched"), STRETCHED)
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("samples", [1, 3])
def test_gradients_are_those_of_autograd(family, grouping, carried, stretched, samples):
    """One step of gradient descent in float64 moves every parameter as autograd would."""
    make = lambda p: SGD(p, lr=0.1)  # noqa: E731
    args = (make, family, grouping, carried, stretched, samples, torch.float64, 1)
    start, expected = course(plain_steps, *args)
    _, end = course(closed_form_steps, *args)
    assert ((expected - start) != 0).all()
    torch.testing.assert_close(end, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("grouping", ["layer", "tensor"])
@pytest.mark.parametrize("frozen", ["body", "body.1", "mean", "rho", "heads.0"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_beside_frozen_parameters_the_others_move_as_with_autograd(family, grouping, frozen, dtype):
    def make(parameters):
        kind = SGD if dtype is torch.float64 else Adam
        return kind(parameters, lr=1e-3, weight_decay=0.1 * (kind is SGD))

    ends = []
    for steps in (plain_steps, closed_form_steps):
        start, end = course(
            steps, make, family, grouping, True, False, 2, dtype, n=3, frozen=frozen
        )
        ends.append(end)
        net = network(family, grouping, dtype=dtype)
        rests = [frozen in name for name, p in net.named_parameters() for _ in range(p.numel())]
        assert torch.equal(start == end, torch.tensor(rests))
    if dtype is torch.float64:
        torch.testing.assert_close(*ends, rtol=1e-9, atol=1e-11)
    else:
        assert (ends[0] - ends[1]).abs().median() < 1e-6


@needs_compiler
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("grouping", "stretched"), STRETCHED)
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_the_compiled_step_runs_the_course_of_autograd(
    family, grouping, carried, stretched, samples, amsgrad
):
    """Adam in float32 against float64: as near as plain float32 comes, and a little more."""
    make = lambda p: Adam(p, lr=1e-3, amsgrad=amsgrad)  # noqa: E731
    args = (make, family, grouping, carried, stretched, samples)
    start, plain = course(plain_steps, *args, torch.float32)
    _, compiled = course(closed_form_steps, *args, torch.float32)
    moved = (plain - start).abs()
    assert moved.median() > 1e-3
    # Adam divides by the size of the gradient, so rounding shows where that is next to nothing.
    assert (plain - compiled).abs().median() < 1e-4 * moved.median()
    assert (plain - compiled).abs().max() < 0.05 * moved.max()


@needs_compiler
@pytest.mark.parametrize("shift", [0.0, 1e-4, 0.1, 3.0, 40.0, 500.0])
@pytest.mark.parametrize("stretched", [False, True])
def test_the_compiled_gradient_of_the_corrected_kl_is_that_of_its_formula(shift, stretched):
    """Adam's first moment is a tenth of the gradient: it is read off at every delta."""
    net = network("radial", "unit", True, torch.float32, stretched)
    with torch.no_grad():
        for block in blocks(net, [0, 1]):
            block.prior_mean.copy_(block.mean - shift * block.prior_scale)
    loss = kl_divergence(net, [0, 1])
    expected = torch.autograd.grad(loss, [p for b in blocks(net, [0, 1]) for p in (b.mean, b.rho)])
    optimizer = Adam(net.parameters())
    closed_form = ClosedFormGradients(net)
    closed_form.before_step(optimizer, blocks(net, [0, 1]), 1.0)
    found = [
        optimizer.state[p]["exp_avg"] * 10 for b in blocks(net, [0, 1]) for p in (b.mean, b.rho)
    ]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-5 * (1 + shift))


@needs_compiler
def test_the_compiled_pass_keeps_the_state_that_torchs_adam_keeps():
    """An optimiser can change hands in the middle: after ten steps PyTorch goes on alike."""
    ends = []
    for first in (plain_steps, closed_form_steps):
        net = network("radial", "layer", True, torch.float32)
        optimizer = Adam(net.parameters(), lr=1e-3, amsgrad=True)
        first(net, optimizer, 10, 1, torch.float32)
        assert all(state["step"] == 10 for state in optimizer.state.values())
        names = {p: sorted(state) for p, state in optimizer.state_dict()["state"].items()}
        plain_steps(net, optimizer, 10, 1, torch.float32)
        ends.append((names, torch.cat([p.detach().flatten() for p in net.parameters()])))
    (names_a, end_a), (names_b, end_b) = ends
    assert names_a == names_b
    assert (end_a - end_b).abs().median() < 1e-6


@needs_compiler
def test_the_compiled_softplus_keeps_up_with_rho():
    """A draw whose noise is known gives the scale away."""
    net = network("gaussian", "layer", True, torch.float32)
    optimizer = Adam(net.parameters(), lr=0.3)
    closed_form = ClosedFormGradients(net)
    for _ in range(20):
        optimizer.zero_grad()
        nll(net, 1, torch.float32).backward()
        closed_form.before_step(optimizer, blocks(net, [0, 1]), 1 / N)
    block = blocks(net, [0])[0]
    torch.manual_seed(3)
    drawn = block.sample().detach()
    torch.manual_seed(3)
    exact = torch.nn.functional.softplus(block.rho.detach().double(), threshold=1e9)
    expected = block.mean.detach().double() + exact * torch.randn_like(block.mean)
    torch.testing.assert_close(drawn.double(), expected, rtol=1e-6, atol=1e-7)
    closed_form.release()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("grouping", ["layer", "unit"])
def test_without_a_compiler_any_adam_runs_the_course_of_autograd(fused, grouping, monkeypatch):
    monkeypatch.setattr(native.step, "library", lambda: None)
    make = lambda p: Adam(p, lr=1e-2, fused=fused)  # noqa: E731
    args = (make, "radial", grouping, True, False, 1, torch.float64)
    start, plain = course(plain_steps, *args)
    _, closed = course(closed_form_steps, *args)
    assert (plain - start).abs().median() > 1e-2
    torch.testing.assert_close(closed, plain, rtol=1e-7, atol=1e-9)


def test_a_network_whose_rho_is_overwritten_draws_with_the_new_one():
    net = network("gaussian", "layer", True, torch.float32)
    closed_form = ClosedFormGradients(net)
    net(batch(torch.float32)[0], 0)
    with torch.no_grad():
        for block in blocks(net, [0]):
            block.rho.fill_(-80.0)
            block.mean.zero_()
    assert net(batch(torch.float32)[0], 0).abs().max() < 1e-20
    closed_form.release()


@needs_compiler
@pytest.mark.parametrize("overwritten", ["nothing", "mean", "rho", "prior_mean", "prior_scale"])
def test_what_is_overwritten_between_steps_is_in_the_next_gradient(overwritten):
    """The sums over a group are carried from step to step only where nobody has changed them."""
    net = network("radial", "layer", True, torch.float32)
    mine = blocks(net, [0, 1])
    optimizer = Adam(net.parameters(), lr=1e-2)
    closed_form = ClosedFormGradients(net)
    closed_form.before_step(optimizer, mine, 1.0)
    with torch.no_grad():
        for block in mine:
            if overwritten != "nothing":
                getattr(block, overwritten).mul_(1.5)
    parameters = [p for b in mine for p in (b.mean, b.rho)]
    before = [optimizer.state[p]["exp_avg"].clone() for p in parameters]
    expected = torch.autograd.grad(kl_divergence(net, [0, 1]), parameters)
    closed_form.before_step(optimizer, mine, 1.0)
    for parameter, old, gradient in zip(parameters, before, expected, strict=True):
        found = (optimizer.state[parameter]["exp_avg"] - 0.9 * old) * 10
        torch.testing.assert_close(found, gradient, rtol=2e-4, atol=2e-4)


def test_a_block_without_draws_still_feels_its_kl_and_one_without_kl_stays():
    net = network("radial", "layer", True, torch.float32)
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    optimizer = Adam(net.parameters(), lr=1e-3)
    closed_form = ClosedFormGradients(net)
    closed_form.before_step(optimizer, blocks(net.body, [0]), 1.0)
    optimizer.step()
    for name, parameter in net.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("head"), name


def test_backward_through_an_old_draw_is_refused():
    net = network("radial", "layer", True, torch.float32)
    closed_form = ClosedFormGradients(net)
    loss = nll(net, 1, torch.float32)
    closed_form.before_step(SGD(net.parameters(), lr=0.1), [], 0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


def test_evaluation_between_forward_and_backward_changes_nothing():
    ends = []
    for evaluate in (False, True):
        net = network("radial", "layer", True, torch.float32)
        optimizer = Adam(net.parameters(), lr=1e-2)
        closed_form = ClosedFormGradients(net)
        torch.manual_seed(1)
        loss = nll(net, 1, torch.float32)
        if evaluate:
            with torch.no_grad(), torch.random.fork_rng():
                nll(net, 5, torch.float32)
        loss.backward()
        closed_form.before_step(optimizer, blocks(net, [0]), 1 / N)
        optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert torch.equal(*ends)


def test_a_family_without_a_closed_form_is_not_served(monkeypatch):
    net = network("radial", "layer")
    block = next(m for m in net.modules() if isinstance(m, PosteriorBlock))
    monkeypatch.setattr(block.family, "kl_gradients", classmethod(lambda cls, prior, pairs: None))
    assert not ClosedFormGradients.serves(net)
    assert not ClosedFormGradients.serves(MLP(30, 3, posterior=None))


class Tempered(Gaussian):
    """Has another KL, but inherits the gradient of its parent's."""

    def closed_kl(self, prior):
        return 1000 * super().closed_kl(prior)


class TemperedWeights(VariationalWeights):
    """The same for a layer."""

    def kl(self):
        return 1000 * super().kl()


def test_a_subclass_is_not_trained_on_its_parents_gradient():
    derived = network("gaussian", "layer", carried=False)
    for block in derived.modules():
        if isinstance(block, PosteriorBlock):
            block.family = Tempered
    assert not ClosedFormGradients.serves(derived)
    derived = network("gaussian", "layer")
    for layer in derived.modules():
        if isinstance(layer, VariationalWeights):
            layer.__class__ = TemperedWeights
    assert not ClosedFormGradients.serves(derived)


@pytest.mark.parametrize("make_optimizer", [Adam, SGD])
def test_a_term_that_is_not_of_the_draws_is_added(make_optimizer):
    """Its gradient comes to `.grad` by autograd, and stands there before the step."""
    ends = []
    for closed in (False, True):
        net = network("radial", "layer")
        optimizer = make_optimizer(net.parameters(), lr=1e-2)
        closed_form = ClosedFormGradients(net) if closed else None
        torch.manual_seed(1)
        for step in range(4):
            optimizer.zero_grad()
            loss = nll(net, 1, torch.float64)
            if step in (1, 2):
                loss = loss + sum(b.mean.square().sum() for b in blocks(net, [0]))
            if closed_form is not None:
                loss.backward()
                closed_form.before_step(optimizer, blocks(net, [0]), 1 / N)
            else:
                (loss + kl_divergence(net, [0]) / N).backward()
            optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    torch.testing.assert_close(*ends, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softplus_is_pytorchs_in_value_and_gradient(dtype):
    rho = torch.linspace(-80, 80, 4001, dtype=dtype, requires_grad=True)
    reference = torch.nn.functional.softplus(rho.detach().double(), threshold=1e9)
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(softplus(rho).double(), reference, rtol=tolerance, atol=0)
    (gradient,) = torch.autograd.grad(softplus(rho).sum(), rho)
    torch.testing.assert_close(gradient, torch.sigmoid(rho.detach()))


@needs_compiler
def test_an_optimiser_whose_state_was_emptied_starts_afresh():
    """As Avalanche does between trainings, also in the middle of ours."""
    ends = []
    for emptied in (False, True):
        net = network("gaussian", "layer", dtype=torch.float32)
        optimizer, closed_form = Adam(net.parameters(), lr=1e-2), ClosedFormGradients(net)
        torch.manual_seed(1)
        for step in range(6):
            if step == 3 and emptied:
                optimizer.state.clear()
            elif step == 3:  # another one, with blocks of its own
                optimizer = Adam(net.parameters(), lr=1e-2)
            optimizer.zero_grad()
            nll(net, 1, torch.float32).backward()
            closed_form.before_step(optimizer, blocks(net, [0, 1]), 0.7 / N)
            optimizer.step()
        ends.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert torch.equal(*ends)


def test_a_copy_in_the_middle_of_a_step_draws_and_learns_by_itself():
    net = network("radial", "layer", True, torch.float32)
    closed_form = ClosedFormGradients(net)
    nll(net, 1, torch.float32)
    copied = deepcopy(net)
    nll(copied, 1, torch.float32).backward()
    assert all(block.mean.grad.abs().sum() > 0 for block in blocks(copied, [0]))
    assert all(block.mean.grad is None for block in blocks(net, [0]))
    closed_form.release()


@needs_compiler
@pytest.mark.parametrize("waits", ["nobody", "a hook", "a scheduler", "a plain parameter"])
def test_the_optimiser_is_asked_to_step_where_anything_is_left_for_it(waits):
    net = network("radial", "layer", True, torch.float32)
    plain = torch.nn.Parameter(torch.ones(1))
    optimizer = Adam([*net.parameters(), plain], lr=1e-2)
    if waits == "a hook":
        optimizer.register_step_post_hook(lambda *_: None)
    if waits == "a scheduler":
        torch.optim.lr_scheduler.ConstantLR(optimizer)
    closed_form = ClosedFormGradients(net)
    nll(net, 1, torch.float32).backward()
    if waits == "a plain parameter":
        plain.grad = torch.ones(1)
    left = closed_form.before_step(optimizer, blocks(net, [0]), 1 / N)
    assert left == (waits != "nobody")
