import pytest
import torch
from avalanche.core import SupervisedPlugin
from learners import (
    make,
    train,
    weights,
)
from torch.optim import Adam

from vcl_radial import native
from vcl_radial.errors import UserError
from vcl_radial.methods.gvcl import stretch
from vcl_radial.nn import MLP, PosteriorSettings
from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.nn.weights import PosteriorBlock, inverse_softplus
from vcl_radial.strategies.gvcl import GVCL
from vcl_radial.strategies.vcl import VCL


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_gvcl_at_one_and_one_is_vcl(family, make_network, multi_head_stream, multi_head_benchmark):
    tasks = list(multi_head_benchmark.train_stream)[:2]
    gvcl, vcl = (make(method, make_network(family), multi_head_stream) for method in (GVCL, VCL))
    for each in (gvcl, vcl):
        train(each, tasks)
    assert torch.equal(weights(gvcl), weights(vcl))


class ByAutograd(GVCL):
    """GVCL whose penalty only autograd can see through."""

    def penalty(self):
        return super().penalty() * 1.0


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_the_closed_form_trains_as_autograd_does(
    family, make_network, multi_head_stream, multi_head_benchmark, monkeypatch
):
    # The compiled pass has a generator of its own; for once it is to draw what PyTorch draws.
    monkeypatch.setattr(native, "standard_normal", lambda out: out.normal_())
    tasks = list(multi_head_benchmark.train_stream)[:2]
    settings = {"strength": 20.0, "optimizer": lambda model: Adam(model.parameters(), lr=1e-3)}
    closed, plain, without = (
        make(method, make_network(family, initial_noise=0.05), multi_head_stream, **settings | own)
        for method, own in ((GVCL, {}), (ByAutograd, {}), (GVCL, {"strength": 1.0}))
    )
    for each in (closed, plain, without):
        train(each, tasks)
    apart = (weights(closed) - weights(plain)).norm()
    assert apart < 0.01 * (weights(without) - weights(plain)).norm()


def test_only_training_is_under_the_stretched_kl(
    make_network, multi_head_stream, multi_head_benchmark, monkeypatch
):
    """What is said of a finished task, its movement, is said of the KL proper."""
    stretched = {"step": [], "end": []}

    def record(when, network):
        blocks = [m for m in network.modules() if isinstance(m, PosteriorBlock)]
        stretched[when] += [block.stretch is not None for block in blocks]

    class Witness(SupervisedPlugin):
        def before_update(self, strategy, **kwargs):
            record("step", strategy.network)

    def movement(network, heads):
        record("end", network)
        return ()

    monkeypatch.setattr("vcl_radial.methods.vcl.movement", movement)
    gvcl = make(GVCL, make_network(), multi_head_stream, strength=5.0, plugins=[Witness()])
    train(gvcl, list(multi_head_benchmark.train_stream)[:2])
    assert stretched["step"]
    assert all(stretched["step"])
    assert stretched["end"]
    assert not any(stretched["end"])


def gaussian_block(mean, scale, prior_mean, prior_scale, carried=True):
    block = PosteriorBlock(mean[None].double(), PosteriorSettings("gaussian"))
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
        gradients = torch.autograd.grad(objective, [block.mean, block.rho])
        torch.testing.assert_close(gradients[0], torch.zeros_like(block.mean), atol=1e-9, rtol=0)
        torch.testing.assert_close(gradients[1], torch.zeros_like(block.rho), atol=1e-9, rtol=0)
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
    kl = beta * block.kl()
    (found,) = torch.autograd.grad(kl, [block.mean])
    ewc = strength * sum(tasks) * (moved - anchor)
    torch.testing.assert_close(found[0], ewc, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_lambda_asks_nothing_more_of_the_scales(family, make_network):
    network = make_network(family, initial_noise=0.05)
    block = next(m for m in network.modules() if isinstance(m, PosteriorBlock))
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


@pytest.mark.parametrize("family", ["gaussian", "radial"])
def test_what_has_not_learnt_is_not_stretched(family, make_network):
    block = next(m for m in make_network(family).modules() if isinstance(m, PosteriorBlock))
    first = block.prior_scale[0, 0].clone()
    assert torch.equal(stretch(block, first, 50.0), torch.ones_like(block.mean))
    unit = block.family.scale_for_weight_noise(1.0, block.mean.shape[-1])
    block.consolidate()
    block.prior_scale.fill_(first * unit)  # noise as wide as at first
    torch.testing.assert_close(stretch(block, first, 50.0), torch.ones_like(block.mean))
    block.prior_scale.fill_(first * unit * 3)  # and wider
    torch.testing.assert_close(stretch(block, first, 50.0), torch.ones_like(block.mean))
    block.prior_scale.fill_(first * unit * 1e-4)
    torch.testing.assert_close(stretch(block, first, 50.0), torch.full_like(block.mean, 50**0.5))


def test_a_larger_lambda_holds_the_means_tighter(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)[:2]
    distances = []
    for strength in (0.0, 1.0, 100.0):
        network = make_network("gaussian", initial_noise=0.05)
        gvcl = make(GVCL, network, multi_head_stream, strength=strength, train_epochs=3)
        train(gvcl, tasks[:1])
        before = network.body[0].weights.mean()[0].detach().clone()
        train(gvcl, tasks[1:])
        distances.append((network.body[0].weights.mean()[0] - before).norm().item())
    assert distances[0] > 1.2 * distances[1]
    assert distances[1] > 1.2 * distances[2]


def test_a_negative_lambda_is_refused(make_network, multi_head_stream):
    with pytest.raises(UserError, match=r"strength = -1 must be at least 0"):
        make(GVCL, make_network(), multi_head_stream, strength=-1)


def test_a_lambda_for_directions_is_refused(multi_head_stream, multi_head_benchmark):
    """Of an RDP the sum over blocks would hold the biases alone."""
    network = MLP(64, 2, hidden=(8,), posterior=RDPSettings("row"))
    with pytest.raises(UserError, match=r"posterior = 'rdp' .* set options\.strength = 1$"):
        make(GVCL, network, multi_head_stream, strength=2.0)
    gvcl = make(GVCL, network, multi_head_stream, strength=1.0)
    train(gvcl, list(multi_head_benchmark.train_stream)[:1])
