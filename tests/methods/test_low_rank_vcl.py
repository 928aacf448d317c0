"""VCL with a low-rank posterior where the exact one is known: a linear model, in two tasks."""

import math

import pytest
import torch
from dense_normals import dense
from failing import fails
from scenarios import CorrelatedRows, KnownNoise, Learner, network
from torch.distributions import MultivariateNormal, kl_divergence

from vcl_radial.methods.vcl import VCL
from vcl_radial.nn import BayesianLinear, ClosedFormGradients, PosteriorSettings, posterior_blocks
from vcl_radial.nn.low_rank import LowRankBlock
from vcl_radial.nn.weights import held_scales
from vcl_radial.optimizers.schedules import SCHEDULES
from vcl_radial.posteriors import Posterior

D = CorrelatedRows.columns
FAMILIES = pytest.mark.parametrize("family", ["low-rank", "radial-low-rank"])


class ExpectedVCL(VCL):
    """With the exact expectation of the NLL, which is quadratic: that over points +-sqrt(D) e_i."""

    def outputs(self, batch):
        (block,) = posterior_blocks(self.network, [])
        return batch.x @ block.posterior.sample(2 * D).mT


def points(self, shape, generator):
    """In place of standard normals, whose first two moments they have."""
    units = math.sqrt(D) * torch.eye(D)
    return torch.cat([units, -units])[: shape[0]].view(shape)


def carried(family, stream):
    """The normal distribution that VCL carries on from two tasks."""
    torch.manual_seed(0)
    settings = PosteriorSettings(family, initial_noise=0.3, rank=D)
    learner = Learner(
        ExpectedVCL,
        BayesianLinear(D, 1, bias=False, posterior=settings),
        stream,
        likelihood=KnownNoise(CorrelatedRows.noise),
        lr=0.1,
        epochs=150,
        batch_size=CorrelatedRows.rows,
        schedule=SCHEDULES["cosine"],
        loss_value=False,
    ).train(0, 1)
    (block,) = posterior_blocks(learner.network, [])
    p = block.prior
    if family == "low-rank":
        return dense(p)
    return MultivariateNormal(p.mean.double(), torch.diag_embed(p.scale.double() ** 2))


def test_of_a_linear_model_two_tasks_end_near_the_batch_posterior_and_nearer_than_mean_field(
    monkeypatch,
):
    monkeypatch.setattr(Posterior, "_randn", points)
    stream = CorrelatedRows()
    exact = stream.batch_posterior()
    full, mean_field = (
        kl_divergence(carried(family, stream), exact).item() for family in ("low-rank", "gaussian")
    )
    assert full < 0.01
    assert mean_field > 1


@FAMILIES
def test_draws_without_gradient_share_a_root_and_are_those_of_the_posterior(family):
    net = network(PosteriorSettings(family, rank=2))
    block = posterior_blocks(net, [])[0]
    x = torch.randn(3, 64)
    with torch.no_grad():
        torch.manual_seed(1)
        before = net(x, 0)
        with held_scales(net):
            assert block.posterior is block.posterior
            torch.manual_seed(1)
            assert torch.equal(net(x, 0), before)
        assert block.posterior is not block.posterior


@pytest.mark.parametrize(
    "families", [("low-rank", "gaussian"), ("radial-low-rank", "radial")], ids=str
)
def test_a_block_starts_beside_the_mean_field_one_and_has_no_more_rows_than_weights(families):
    low, plain = (
        network(PosteriorSettings(family, "unit", initial_noise=0.1, rank=5)) for family in families
    )
    for one, other in zip(posterior_blocks(low, [0]), posterior_blocks(plain, [0]), strict=True):
        assert type(one) is LowRankBlock
        assert torch.equal(one.mean, other.mean)
        torch.testing.assert_close(one.weight_noise(), other.weight_noise(), rtol=0.01, atol=0)
        assert one.factor.shape == (len(one.mean), 5, one.mean.shape[1])
    few = BayesianLinear(2, 1, posterior=PosteriorSettings(families[0], "tensor"))
    assert [b.factor.shape for b in posterior_blocks(few, [])] == [(1, 2, 2), (1, 1, 1)]


@FAMILIES
def test_all_three_parts_are_carried_and_autograd_serves(family):
    net = network(family, hidden=(8,))
    assert not ClosedFormGradients.serves(net)
    Learner("vcl", net, lr=1e-2).train(0)
    block = posterior_blocks(net, [])[0]
    assert type(block.prior) is block.family
    for name in ("mean", "factor"):
        assert torch.equal(getattr(block, f"prior_{name}"), getattr(block, name))
    assert torch.equal(block.prior_scale, block.scale())
    assert torch.equal(block.prior_noise(), block.weight_noise())
    assert (block.factor.square().mean().sqrt() - 0.1).abs() > 1e-3  # it has learned
    assert math.isclose(block.kl().item(), 0, abs_tol=1e-9)


def test_a_rank_below_one_is_refused():
    with fails("rank"):
        PosteriorSettings("low-rank", rank=0)
