import io
import math

import pytest
import torch
from failing import fails
from torch import nn
from torch.distributions import Normal, kl_divergence

from vcl_radial.nn import MLP, GaussianNetwork, PosteriorSettings
from vcl_radial.nn.rdp import RDPSettings


def linear(features=400, **settings):
    torch.manual_seed(0)
    return GaussianNetwork(nn.Linear(features, 1, bias=False), **settings)


def set_to(network, **tensors):
    """Give the single weight of `linear` these prior and posterior values."""
    (q,) = network.posteriors([]).values()
    for name, tensor in tensors.items():
        setattr(q, name, tensor.view_as(q.mean))
    return q


def test_a_call_draws_each_weight_from_its_own_gaussian():
    network = linear(50)
    precision = torch.logspace(-2, 4, 50)
    q = set_to(network, precision=precision)
    draws = torch.stack([network(torch.eye(50)).detach().flatten() for _ in range(4000)])
    z = (draws - q.mean.detach().flatten()) * precision.sqrt()
    # Means and variances of 50 standard normals, each within 5 standard errors.
    assert z.mean(0).abs().max() < 5 / math.sqrt(4000)
    assert (z.var(0) - 1).abs().max() < 5 * math.sqrt(2 / 4000)


def test_gradients_flow_to_the_means_through_the_draw():
    network = linear(5, initial_noise=0.5)
    network(torch.arange(5.0)).sum().backward()
    torch.testing.assert_close(network.network.weight.grad, torch.arange(5.0).view(1, 5))


def test_noise_can_be_left_out_of_training_or_of_predictions():
    x = torch.eye(3)
    for noisy_training in (True, False):
        network = linear(3, noisy_training=noisy_training, noisy_prediction=not noisy_training)
        for mode in (True, False):
            network.train(mode)
            same = torch.equal(network(x), network.network(x))
            assert same is not (noisy_training if mode else not noisy_training)


def test_the_kl_is_that_of_normal_distributions():
    network = linear()
    prior_mean, mean = torch.randn(2, 400)
    prior_precision, precision = torch.rand(2, 400) + 0.1
    q = set_to(network, prior_mean=prior_mean, prior_precision=prior_precision, precision=precision)
    q.mean.data = mean.view(1, 400)
    expected = kl_divergence(
        Normal(mean, precision.rsqrt()), Normal(prior_mean, prior_precision.rsqrt())
    ).sum()
    torch.testing.assert_close(network.kl([]), expected)
    network.carry([])
    assert network.kl([]) == 0


def test_a_task_starts_with_the_noise_asked_for():
    network = linear(prior_scale=2.0, initial_noise=0.1)
    (q,) = network.start([])
    torch.testing.assert_close(q.precision, torch.full((1, 400), 1 / 4 + 100.0))
    q.prior_precision = torch.full((1, 400), 300.0)
    (q,) = network.start([])
    torch.testing.assert_close(q.precision, torch.full((1, 400), 400.0))


def test_only_the_heads_of_the_tasks_at_hand_are_drawn_and_carried():
    network = GaussianNetwork(MLP(4, 2, hidden=(3,), posterior=None), initial_noise=0.1)
    network.network.head.adapt([0, 1, 2])
    names = set(network.posteriors([0, 2]))
    assert {n.split(".")[2] for n in names if n.startswith("head")} == {"0", "2"}
    assert {n for n in names if n.startswith("body")} == {"body.0.weight", "body.0.bias"}

    torch.manual_seed(1)
    alone = network(torch.ones(5, 4), 1)
    network.network.head.adapt([3, 4])
    torch.manual_seed(1)
    assert torch.equal(network(torch.ones(5, 4), 1), alone)

    network.carry([1])
    for name, q in network.posteriors([0, 1, 2]).items():
        carried = name.startswith(("body", "head.heads.1"))
        assert bool((q.prior_precision == q.precision).all()) is carried


def test_the_state_dict_brings_back_priors_and_posteriors_of_every_head():
    def make():
        torch.manual_seed(0)
        return GaussianNetwork(MLP(4, 2, hidden=(3,), posterior=None), initial_noise=0.1)

    first = make()
    first.network.head.adapt([0, 1])
    for q in first.posteriors([0, 1]).values():
        q.precision = 1 + torch.rand_like(q.mean)
        q.prior_mean = torch.randn_like(q.mean)
    first.carry([0])
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = make()
    second.load_state_dict(torch.load(file, weights_only=True))
    found = second.posteriors([0, 1])
    for name, q in first.posteriors([0, 1]).items():
        for field in ("mean", "prior_mean", "prior_precision", "precision"):
            assert torch.equal(getattr(found[name], field), getattr(q, field))
    # What was loaded is a copy: learning on does not reach back.
    kept = first.posteriors([0])["body.0.weight"].precision.clone()
    found["body.0.weight"].precision.zero_()
    assert torch.equal(first.posteriors([0])["body.0.weight"].precision, kept)


def test_moving_the_network_moves_the_posteriors_that_an_optimiser_holds():
    network = linear()
    (held,) = network.start([])
    network.double()
    (q,) = network.posteriors([]).values()
    assert q is held
    assert {t.dtype for t in (q.mean, q.prior_mean, q.prior_precision, q.precision)} == {
        torch.float64
    }


@pytest.mark.parametrize("name", ["prior_scale", "initial_noise"])
def test_a_scale_that_is_not_above_zero_is_named(name):
    with fails(name, 0):
        linear(**{name: 0.0})


@pytest.mark.parametrize("posterior", [PosteriorSettings("gaussian"), RDPSettings()])
def test_weights_that_have_a_posterior_already_are_refused(posterior):
    network = MLP(4, 2, hidden=(3,), posterior=posterior)
    with fails("posterior", "none"):
        GaussianNetwork(network)


def test_frozen_parameters_are_constants():
    network = nn.Linear(3, 2)
    network.bias.requires_grad_(False)
    gaussian = GaussianNetwork(network)
    assert list(gaussian.posteriors([])) == ["weight"]
    zeros = torch.zeros(4, 3)
    assert torch.equal(gaussian(zeros), network(zeros))
