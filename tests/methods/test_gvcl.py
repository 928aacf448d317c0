"""Generalised VCL: the stretched KL against the equations that it is made of."""

import pytest
import torch
from failing import refuses
from scenarios import Learner, network

from vcl_radial import native
from vcl_radial.methods.gvcl import GVCL, stretch
from vcl_radial.nn import PosteriorSettings
from vcl_radial.nn.blocks import PosteriorBlock, inverse_softplus
from vcl_radial.nn.rdp import RDPSettings

families = pytest.mark.parametrize("family", ["gaussian", "radial"])


class ByAutograd(GVCL):
    """GVCL whose penalty only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


def blocks(net):
    return [module for module in net.modules() if isinstance(module, PosteriorBlock)]


@families
def test_the_closed_form_trains_as_autograd_does(family, monkeypatch):
    # The compiled pass has a generator of its own; for once it is to draw what PyTorch draws.
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())
    closed, plain, without = (
        Learner(method, network(family, initial_noise=0.05), strength=strength).train(0, 1)
        for method, strength in ((GVCL, 20.0), (ByAutograd, 20.0), (GVCL, 1.0))
    )
    apart = (closed.weights() - plain.weights()).norm()
    assert apart < 0.01 * (without.weights() - plain.weights()).norm()


def test_only_training_is_under_the_stretched_kl(monkeypatch):
    """What is said of a finished task, its movement, is said of the KL proper."""
    gvcl, training, end = Learner(GVCL, strength=5.0), [], []

    def stretched(net):
        return [block.stretch is not None for block in blocks(net)]

    def movement(net, heads):
        end.extend(stretched(net))
        return ()

    monkeypatch.setattr("vcl_radial.methods.vcl.movement", movement)
    gvcl.train(0, 1, after_step=lambda: training.extend(stretched(gvcl.network)))
    assert training
    assert all(training)
    assert end
    assert not any(end)


def gaussian_block(mean, scale, prior_mean, prior_scale, carried=True):
    block = PosteriorSettings("gaussian").make_block(mean[None].double())
    block.double()
    with torch.no_grad():
        rho = [inverse_softplus(float(s)) for s in scale]
        block.rho.copy_(torch.tensor([rho], dtype=torch.float64))
        block.prior_mean.copy_(prior_mean)
        block.prior_scale.copy_(prior_scale)
    block.carried = carried
    return block


def regression_tasks():
    """Tasks y = X w + N(0, 1) with orthogonal columns in X, so that mean field is exact."""
    torch.manual_seed(0)
    tasks = []
    for _ in range(3):
        X = torch.linalg.qr(torch.randn(20, 4, dtype=torch.float64))[0] * torch.tensor([3, 1, 5, 2])
        y = X @ torch.tensor([1.0, -1, 0.5, 2]).double() + torch.randn(20, dtype=torch.float64)
        tasks.append((X, y))
    return tasks


def expected_nll(block, X, y):
    """E_q of the summed squared error over 2, in closed form: the noise of y has variance 1."""
    q = block.posterior
    errors = (y - q.mean @ X.T).square().sum() + (q.scale.square() @ X.square().T).sum()
    return errors / 2


@pytest.mark.parametrize(("beta", "strength"), [(1.0, 1.0), (0.2, 1.0), (0.5, 7.0), (2.0, 0.5)])
def test_linear_regression_has_the_posterior_that_the_equations_say(beta, strength):
    """Its precision is curvature / beta more than the last, and its mean solves the tempered
    normal equations; there, autograd finds the objective stationary."""
    s0 = torch.tensor(1.5).double()
    mean, precision = torch.zeros(4).double(), s0.square().reciprocal().expand(4)
    for task, (X, y) in enumerate(regression_tasks()):
        h = X.square().sum(0)
        pull = strength * (precision - s0**-2) + s0**-2
        new_mean = (X.T @ y / beta + pull * mean) / (h / beta + pull)
        new_precision = precision + h / beta
        block = gaussian_block(
            new_mean, new_precision**-0.5, mean, precision**-0.5, carried=task > 0
        )
        block.stretch = stretch(block, s0, strength)
        objective = expected_nll(block, X, y) + beta * block.kl()
        for gradient in torch.autograd.grad(objective, [block.mean, block.rho]):
            torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-9, rtol=0)
        mean, precision = new_mean, new_precision
    if strength == 1:
        # And the sequence ends where all data together end, tempered alike.
        X, y = (torch.cat(parts) for parts in zip(*regression_tasks(), strict=True))
        h = X.square().sum(0)
        torch.testing.assert_close(precision, h / beta + s0**-2)
        torch.testing.assert_close(mean, X.T @ y / beta / precision)


@pytest.mark.parametrize("strength", [0.0, 1.0, 30.0])
def test_as_beta_vanishes_the_pull_on_the_means_is_that_of_online_ewc(strength):
    s0 = torch.tensor(1.0).double()
    tasks = [X.square().sum(0) for X, _ in regression_tasks()]
    anchor, moved = torch.randn(4).double(), torch.randn(4).double()
    beta = 1e-8
    precision = sum(tasks) / beta + s0**-2
    block = gaussian_block(moved, precision**-0.5, anchor, precision**-0.5)
    block.stretch = stretch(block, s0, strength)
    (pull,) = torch.autograd.grad(beta * block.kl(), [block.mean])
    ewc = strength * sum(tasks) * (moved - anchor)
    torch.testing.assert_close(pull[0], ewc, rtol=1e-6, atol=1e-6)


@families
def test_lambda_asks_nothing_more_of_the_scales(family):
    block = blocks(network(family, initial_noise=0.05))[0]
    block.consolidate()
    with torch.no_grad():
        block.rho.add_(0.1 * torch.randn_like(block.rho))
    first, kl = torch.tensor(1.0), block.kl()
    plain = torch.autograd.grad(kl, block.rho)[0]
    for strength in (0.1, 10.0):
        # With the mean at the prior's, there is nothing to stretch.
        block.stretch = stretch(block, first, strength)
        torch.testing.assert_close(block.kl(), kl)
        torch.testing.assert_close(torch.autograd.grad(block.kl(), block.rho)[0], plain)


@families
def test_what_has_not_learnt_is_not_stretched(family):
    block = blocks(network(family))[0]
    first, ones = block.prior_scale[0, 0].clone(), torch.ones_like(block.mean)
    assert torch.equal(stretch(block, first, 50.0), ones)
    unit = block.family.scale_for_weight_noise(1.0, block.mean.shape[-1])
    block.consolidate()
    # Noise as wide as at first, and wider, and of weights that are known for sure.
    for noise, expected in ((1, 1.0), (3, 1.0), (1e-4, 50**0.5)):
        block.prior_scale.fill_(first * unit * noise)
        torch.testing.assert_close(stretch(block, first, 50.0), expected * ones)


def test_a_larger_lambda_holds_the_means_tighter():
    distances = []
    for strength in (0.0, 1.0, 100.0):
        net = network("gaussian", initial_noise=0.05)
        gvcl = Learner(GVCL, net, strength=strength, epochs=3).train(0)
        before = net.body[0].weights.mean()[0].detach().clone()
        gvcl.train(1)
        distances.append((net.body[0].weights.mean()[0] - before).norm().item())
    assert distances[0] > 1.2 * distances[1]
    assert distances[1] > 1.2 * distances[2]


@pytest.mark.parametrize("posterior", [RDPSettings("row"), "low-rank", "radial-low-rank"])
def test_a_lambda_for_directions_or_correlations_is_refused(posterior):
    """Of an RDP the sum over blocks would hold the biases alone."""
    net = network(posterior, hidden=(8,))
    with refuses("options.strength"):
        Learner(GVCL, net, strength=2.0)
    Learner(GVCL, net, strength=1.0).train(0)
