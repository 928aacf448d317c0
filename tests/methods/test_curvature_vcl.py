"""VCL with a computed precision: the exact posterior of a linear model, and Kronecker factors."""

import pytest
import torch
from dense_normals import dense, precision_of
from failing import fails, refuses
from scenarios import CorrelatedRows, KnownNoise, Learner, network
from torch.distributions import kl_divergence

from vcl_radial import nn
from vcl_radial.curvature import kronecker_factors
from vcl_radial.methods.curvature_vcl import CurvatureVCL, HeldNoise
from vcl_radial.nn import BayesianConv2d, BayesianLinear, PosteriorSettings, posterior_blocks
from vcl_radial.nn.weights import at_means
from vcl_radial.optimizers.schedules import SCHEDULES

D = CorrelatedRows.columns


def by_units(rank=3, **settings):
    return PosteriorSettings("low-rank", "unit", rank=rank, **settings)


def net(**settings):
    return network(by_units(), hidden=(16,), **settings)


def linear(rank, epochs):
    torch.manual_seed(0)
    layer = BayesianLinear(D, 1, bias=False, posterior=by_units(rank))
    return Learner(
        CurvatureVCL,
        layer,
        CorrelatedRows(),
        likelihood=KnownNoise(CorrelatedRows.noise),
        lr=0.1,
        epochs=epochs,
        batch_size=CorrelatedRows.rows,
        schedule=SCHEDULES["cosine"],
        train_samples=20,
    )


def test_of_a_linear_model_two_tasks_end_at_the_batch_posterior():
    learner = linear(D, epochs=150).train(0, 1)
    (block,) = posterior_blocks(learner.network, [])
    exact = learner.stream.batch_posterior()
    torch.testing.assert_close(
        precision_of(block.prior)[0], exact.precision_matrix, rtol=1e-5, atol=1e-5
    )
    assert kl_divergence(dense(block.prior), exact).item() < 0.01


@pytest.mark.parametrize("rank", [1, 2])
def test_at_a_lower_rank_the_diagonal_is_that_of_the_batch_posterior(rank):
    # The precision is computed from the points, however far the means have come.
    (block,) = posterior_blocks(linear(rank, epochs=1).train(0, 1).network, [])
    exact = CorrelatedRows().batch_posterior().precision_matrix
    ours = precision_of(block.prior)[0]
    torch.testing.assert_close(ours.diagonal(), exact.diagonal(), rtol=1e-5, atol=0)
    assert (ours - exact).norm() < (exact - exact.diagonal().diag()).norm()


@pytest.mark.parametrize("multi_head", [True, False])
def test_a_unit_gets_its_share_of_the_kronecker_factors(multi_head):
    learner = Learner(CurvatureVCL, net(multi_head=multi_head), hessian_weight=3.0, kl_weight=0.5)
    learner.train(0)
    method, blocks = learner.method, posterior_blocks(learner.network, [0])
    layers = dict(method._layers())
    with at_means(learner.network):
        factors = kronecker_factors(learner.network, layers, method.points())
    for block, (inputs, gradients) in zip(blocks, factors.values(), strict=True):
        added = precision_of(block.prior) - torch.eye(len(inputs))
        expected = gradients.diagonal()[:, None] * inputs.diagonal() * 3.0 / 0.5
        diagonal = added.diagonal(dim1=-2, dim2=-1)
        torch.testing.assert_close(diagonal.float(), expected, rtol=1e-3, atol=1e-3)
        assert block.prior_factor.abs().max() > 0


def test_the_penalty_is_what_the_networks_kl_gains_as_the_means_move():
    learner = Learner(CurvatureVCL, net(multi_head=False)).train(0)
    learner.begin(1)
    method, blocks = learner.method, learner.method._blocks
    at_prior = nn.kl_divergence(method.network, [0]).item()
    assert at_prior > 0  # of the precision, which holds the task's points already
    assert method.penalty().item() == 0
    for block in blocks:
        block.mean.data += 0.01 * torch.randn_like(block.mean)
    ours, theirs = method.penalty(), nn.kl_divergence(method.network, [0])
    assert ours.item() == pytest.approx(theirs.item() - at_prior, rel=1e-3)
    for one, other in zip(
        *(torch.autograd.grad(kl, [block.mean for block in blocks]) for kl in (ours, theirs)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_steps_move_the_means_alone():
    learner = Learner(CurvatureVCL, net()).train(0)
    block = posterior_blocks(learner.network, [1])[0]
    seen = []
    learner.train(
        1, after_step=lambda: seen.append([p.detach().clone() for p in block.parameters()])
    )
    for first, last, moved in zip(seen[0], seen[-1], (True, False, False), strict=True):
        assert torch.equal(first, last) is not moved


def test_held_draws_are_the_layers_own():
    layer = BayesianLinear(5, 3, posterior=by_units(2, initial_noise=0.5))
    torch.manual_seed(1)
    weight, bias = layer.weights.sample()
    torch.manual_seed(1)
    other, other_bias = HeldNoise(layer.weights).sample()
    torch.testing.assert_close(other, weight)
    torch.testing.assert_close(other_bias, bias)
    (block,) = layer.weights.posterior_blocks()
    (gradient,) = torch.autograd.grad(other.sum(), block.mean)
    assert torch.equal(gradient[:, :-1], torch.ones(3, 5))


def test_the_precision_does_not_depend_on_batches():
    ends = []
    for batch_size in (7, 90):
        learner = Learner(CurvatureVCL, net(), lr=0.0, batch_size=batch_size).train(0)
        ends.append([precision_of(block.prior) for block in posterior_blocks(learner.network, [0])])
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "posterior",
    ["low-rank", "gaussian", "radial", PosteriorSettings("radial-low-rank", "unit")],
    ids=str,
)
def test_other_posteriors_are_refused(posterior):
    with refuses("posterior", "grouping"):
        CurvatureVCL(network(posterior))


def test_options_and_layers_that_it_cannot_serve_are_refused():
    with fails("options.hessian_weight"):
        CurvatureVCL(net(), hessian_weight=0)
    with refuses("options.restart"):
        CurvatureVCL(net(), restart=True)
    with refuses("kl_weight"):
        CurvatureVCL(net(), kl_weight=0.0)
    grouped = torch.nn.Sequential(BayesianConv2d(4, 4, 3, groups=2, posterior=by_units()))
    with refuses("BayesianConv2d"):
        CurvatureVCL(grouped)
