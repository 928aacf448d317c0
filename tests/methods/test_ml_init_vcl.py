"""VCL from a maximum-likelihood start: what the start moves, and where it ends."""

import copy

import pytest
import torch
from scenarios import ALL, Learner, network
from torch.optim import SGD

from vcl_radial.nn.rdp import RDPSettings
from vcl_radial.posteriors.rdp import RDP

WHOLE = {"optimizer": SGD, "lr": 0.05, "batch_size": ALL}
"""Batches of the whole task leave no randomness but the noise, which there is none of."""


def start(net, number, **settings):
    """The start alone: no epoch of variational training, and nothing is carried."""
    learner = Learner("ml_init_vcl", net, epochs=0, **settings)
    learner.method.end_task = lambda task: None
    return learner.train(number)


def moved(before, after):
    return {name for name in before if not _equal(before[name], after[name])}


def _equal(a, b):
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_the_start_is_where_point_estimates_end():
    bayesian, point = network("gaussian"), network(None)
    first = bayesian.body[0].weights.mean()[0].detach().clone()
    start(bayesian, 0, ml_epochs=30, **WHOLE)
    Learner("naive", point, epochs=30, **WHOLE).train(0)
    pairs = (bayesian.body[0], point.body[0]), (bayesian.head.head(0), point.head.head(0))
    for layer, point_layer in pairs:
        weight, bias = layer.weights.mean()
        torch.testing.assert_close(weight, point_layer.weight, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(bias, point_layer.bias, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(bayesian.body[0].weights.mean()[0], first)


@pytest.mark.parametrize(("every_task", "starts"), [(False, [True, False]), (True, [True, True])])
def test_scales_and_priors_wait_for_the_variational_training(every_task, starts):
    net = network("gaussian", initial_noise=0.02)
    settings = {"ml_epochs": 1, "every_task": every_task, "kl_weight": 0.7}
    learner = Learner("ml_init_vcl", net, epochs=0, **settings)
    learner.method.end_task = lambda task: None
    for task, expected in enumerate(starts):
        learner.adapt(task)
        before = copy.deepcopy(net.state_dict())
        learner.train(task)
        trained = (n for n in before if n.startswith(("body", f"head.heads.{task}.")))
        means = {name for name in trained if name.endswith(".mean")}
        assert moved(before, net.state_dict()) == (means if expected else set())
        assert learner.method.kl_weight == 0.7


def test_a_start_at_the_likelihood_fits_sooner():
    fits = [
        Learner("ml_init_vcl", network("gaussian", initial_noise=0.1), ml_epochs=epochs, epochs=3)
        for epochs in (0, 20)
    ]
    without, with_start = (learner.train(0).nll(0) for learner in fits)
    assert with_start < 0.7 * without


@pytest.mark.parametrize("grouping", RDP.groupings)
def test_radii_and_directions_start_at_the_likelihood_too(grouping):
    """Without noise, and with their concentrations, scales and priors as they were."""
    ends = []
    for samples in (1, 2):  # more noise would lead elsewhere, if there were any
        net = network(RDPSettings(grouping, 0.05), False, hidden=(8,))
        before = copy.deepcopy(net.state_dict())
        learner = start(net, 0, ml_epochs=3, train_samples=samples, **WHOLE)
        names = {name.rsplit(".", 1)[1] for name in moved(before, net.state_dict())}
        assert names == {"direction", "loc", "mean"}
        assert all(p.requires_grad for p in net.parameters())
        assert not torch.equal(*(net(torch.ones(1, 64)) for _ in range(2)))  # it draws again
        ends.append(learner.weights())
    torch.testing.assert_close(*ends)
