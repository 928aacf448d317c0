"""VCL with radii and directions: what its carried prior keeps, and how it fails."""

import pytest
import torch
from failing import refuses
from scenarios import ALL, Learner, network

from vcl_radial.errors import Diverged
from vcl_radial.nn import consolidate, kl_divergence
from vcl_radial.nn.rdp import RADII, RDPSettings
from vcl_radial.posteriors.rdp import RDP, HalfCauchyPrior


def rdp(multi_head=True, radius="log-normal"):
    return network(RDPSettings("row", 0.05, radius=radius), multi_head)


@pytest.mark.parametrize("grouping", RDP.groupings)
def test_the_posterior_becomes_the_prior(grouping):
    """The first one holds directions as it is set, the later ones as the posterior does."""
    settings = RDPSettings(grouping, 0.05, prior_scale=0.4, prior_length=0.7)
    vcl = Learner("rdp_vcl", network(settings, hidden=(8,)), lr=1e-2, batch_size=100)
    vcl.adapt(0, 1)
    blocks = [m for m in vcl.network.modules() if type(m).__name__ == "RDPBlock"]
    assert all(block.prior == HalfCauchyPrior(0.4, 0.7) for block in blocks)
    vcl.train(0, 1)
    assert kl_divergence(vcl.network, [0, 1]).item() == pytest.approx(0, abs=1e-4)
    for block in blocks:
        assert isinstance(block.prior, RDP)
        q, p = block.posterior.direction, block.prior.direction
        assert torch.equal(p.concentration, q.concentration)


def accuracies(kind, net, **settings):
    """On the first task and on the second, after both."""
    learner = Learner(kind, net, lr=1e-2, epochs=5, **settings).train(0, 1)
    return learner.accuracy(0), learner.accuracy(1)


@pytest.mark.parametrize("radius", RADII)
def test_it_forgets_less_than_fine_tuning_by_its_prior(radius):
    """One head for all classes, where training on the second task alone wipes out the first."""
    first, second = accuracies("rdp_vcl", rdp(False, radius))
    assert first > 50
    assert second > 75
    assert accuracies("naive", network(None, False))[0] < 10
    # So it is the carried prior that keeps the first task, and not the family.
    assert accuracies("rdp_vcl", rdp(False, radius), kl_weight=0.0)[0] < 20


def test_heads_of_other_tasks_keep_their_posterior_and_their_prior():
    net = rdp()
    net.head.adapt([0, 1])
    consolidate(net, [0])
    trained, untrained = (net.head.head(task).weights.rows for task in (0, 1))
    assert isinstance(trained.prior, RDP)
    assert isinstance(untrained.prior, HalfCauchyPrior)
    before = {name: value.clone() for name, value in trained.named_buffers()}
    with torch.no_grad():
        untrained.direction.add_(1.0)
    consolidate(net, [1])
    assert all(torch.equal(value, before[name]) for name, value in trained.named_buffers())


def test_a_network_without_an_rdp_is_refused():
    with refuses("RDPVCL", "posterior"):
        Learner("rdp_vcl", network("gaussian"))


def test_a_concentration_that_diverges_is_seen_in_the_penalty():
    net = rdp()
    torch.nn.init.constant_(net.body[0].weights.rows.log_concentration, 1e4)  # kappa = inf
    with refuses("penalty() of RDPVCL", kind=Diverged):
        Learner("rdp_vcl", net, batch_size=ALL).train(0)
