"""The bytes that a method carries: what has to be kept to go on, counted once."""

from functools import partial

import pytest
import torch
from scenarios import Learner, network

from vcl_radial.methods.bayes_linear import BayesLinear
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.nn.rdp import RDPSettings


def carried(kind, net, *, seed=0, tasks=(0, 1), **settings):
    torch.manual_seed(seed)
    learner = Learner(kind, net, **settings)
    start = contents(learner.network.state_dict())
    learner.train(*tasks)
    return carried_bytes(learner.method.state_dict(), start)


def weights(net):
    return 4 * sum(p.numel() for p in net.parameters())


def single(posterior=None, **settings):
    return network(posterior, False, **settings)


def test_a_method_without_memory_carries_its_network_alone():
    net = single()
    assert carried("naive", net) == weights(net)


def test_heads_of_earlier_tasks_are_carried():
    net = network(None)
    total = carried("naive", net, tasks=(0, 1, 2))
    assert len(net.head.heads) == 3
    assert total == weights(net)


@pytest.mark.parametrize(
    "posterior",
    ["gaussian", "radial", "low-rank", "radial-low-rank", RDPSettings("row", 0.05)],
)
def test_a_prior_that_was_the_posterior_is_carried_with_it(posterior):
    net = single(posterior)
    assert carried("rdp_vcl" if isinstance(posterior, RDPSettings) else "vcl", net) == weights(net)


@pytest.mark.parametrize(("name", "copies"), [("ewc", 2), ("ewc_separate", 3)])
def test_a_penalty_carries_weights_and_fisher_and_an_anchor_that_is_not_the_weights(name, copies):
    """The one anchor of online EWC is what the last task left; that of several tasks is not."""
    net = single()
    assert carried(name, net) == copies * weights(net)


@pytest.mark.parametrize("size", [20, 40])
def test_replay_carries_its_points(size):
    """A digit has 64 values and at most 17 of them differ; a point 24 bytes besides."""
    net = single()
    learner = Learner("replay", net, buffer_size=size)
    start = contents(net.state_dict())
    learner.train(0, 1)
    levels = 4 * len(learner.method.levels)
    assert 0 < levels <= 4 * 17
    total = carried_bytes(learner.method.state_dict(), start)
    assert total == weights(net) + size * (64 + 24) + levels


@pytest.mark.parametrize("units", [10, 30])
def test_an_exact_posterior_carries_its_precision_and_mean_and_no_random_weight(units):
    """D^2 numbers and D x C in float64; beside them a bias for each unit and a few numbers."""
    D, C = units + 1, 10
    exact = partial(BayesLinear, features="random-relu", units=units)
    random_weights = 4 * units * 64
    more = carried(exact, single()) - 8 * (D**2 + D * C) - 4 * units
    assert 0 <= more < min(1_000, random_weights)


@pytest.mark.parametrize("name", ["naive", "ewc", "replay", "si"])
def test_the_number_does_not_depend_on_the_seed(name):
    counts = set()
    for seed in (0, 1):
        net = single()
        torch.manual_seed(seed)
        for parameter in net.parameters():
            parameter.data += 0.01 * torch.randn_like(parameter)
        counts.add(carried(name, net, seed=seed))
    assert len(counts) == 1


def test_what_training_has_left_as_it_was_and_what_is_there_twice_do_not_count():
    a, b = torch.arange(6.0), torch.ones(3, dtype=torch.bool)
    start = contents({"fixed": a})
    state = {"fixed": a.clone(), "moved": a + 1, "more": [{"again": a + 1}, b, "words", 7, None]}
    assert carried_bytes(state, start) == 6 * 4 + 3
    assert carried_bytes({"shape": (a + 1).view(2, 3), **state}, start) == 2 * 6 * 4 + 3
    assert carried_bytes({"type": (a + 1).double(), **state}, start) == 6 * 4 + 6 * 8 + 3
    assert carried_bytes({"empty": a[:0], "number": torch.tensor(2.0)}, start) == 4


def test_another_prior_than_the_posterior_counts():
    x = torch.rand(5) + 1
    for prior, bytes_carried in ((x * (1 + 1e-7), 20), (x * 1.01, 40), (x[:4], 36)):
        assert carried_bytes({"q.mean": x, "q.prior_mean": prior}, set()) == bytes_carried
