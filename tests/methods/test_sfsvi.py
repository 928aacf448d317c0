"""Function-space VI: what a penalty is a divergence of, recomputed by other means."""

import copy

import pytest
import torch
from scenarios import ALL, Learner, network
from torch.distributions import Normal, kl_divergence

from vcl_radial.methods.sfsvi import SFSVI, function_kl
from vcl_radial.nn import BayesianLinear
from vcl_radial.nn.linearised import Moments

families = pytest.mark.parametrize("family", ["gaussian", "radial"])


class Recorded(SFSVI):
    """Keeps, for each step, the penalty and what it was computed from; it stays where it is."""

    def __init__(self, net, **settings):
        super().__init__(net, **settings)
        self.recorded = []

    def penalty(self):
        penalty = super().penalty()
        self.recorded.append((penalty.item(), self._batch.x.clone(), self._old))
        return penalty

    def step(self, optimizer):
        """Stay."""


def gaussian(moments):
    return Normal(moments.mean, moments.variance.sqrt())


@families
def test_the_first_task_is_held_to_a_wide_function(family):
    learner = Learner(Recorded, network(family), context_points=12, function_scale=3.0).train(0)
    method = learner.method
    penalty, x, old = method.recorded[0]
    assert old is None
    with torch.no_grad():
        now = method.moments(learner.network, x[:12], torch.zeros(12, dtype=torch.int64))
    kl = kl_divergence(gaussian(now), Normal(0.0, 3.0)).sum()
    assert penalty == pytest.approx(len(learner.points(0).y) / 12 * kl.item(), rel=1e-5)


@families
def test_a_later_task_starts_at_0_and_is_held_to_the_old_heads(family):
    net = network(family)
    net.head.adapt([2])
    state = copy.deepcopy(Learner(SFSVI, net).train(0, 1).method.state_dict())
    state["method"] = Recorded.__name__
    learner = Learner(Recorded, net, context_points=10)
    method = learner.method
    method.load_state_dict(state)
    learner.train(2)
    assert all(penalty == pytest.approx(0, abs=1e-3) for penalty, _, _ in method.recorded)
    # And from another body than the one that the task started with.
    method.load_state_dict(state)
    task = learner.begin(2)
    with torch.no_grad():
        for layer in net.body:
            for block in layer.weights.posterior_blocks():
                block.mean.mul_(1.01)
    learner.standing_loss(2, 32, begin=False)
    penalty, x, old = method.recorded[-1]
    with torch.no_grad():
        kl = 0.0
        for head in (0, 1):
            part = x[head:10:2]
            heads = torch.full((len(part),), head)
            pair = (gaussian(method.moments(network, part, heads)) for network in (net, old))
            kl += kl_divergence(*pair).sum().item()
    assert kl > 0
    assert penalty == pytest.approx(task.points / min(len(x), 10) * kl, rel=1e-4)


def test_the_kl_is_0_where_nothing_has_changed_and_above_elsewhere():
    torch.manual_seed(0)
    here = Moments(torch.randn(5, 3).double(), torch.rand(5, 3).double() + 0.1)
    assert function_kl(here, here).item() == 0
    for other in (Moments(here.mean + 0.1, here.variance), Moments(here.mean, 1.1 * here.variance)):
        assert function_kl(other, here).item() > 0
        assert function_kl(here, other).item() > 0


@pytest.mark.slow
def test_less_is_forgotten_than_by_fine_tuning():
    def forgotten(learner):
        """By how many points the tasks are worse at the end than when they were learnt."""
        learnt = [learner.train(task).accuracy(task) for task in range(5)]
        return sum(learnt) / len(learnt) - learner.accuracy(*range(5))

    sfsvi = Learner(SFSVI, network("gaussian"), epochs=20)
    assert forgotten(sfsvi) < 0.3 < forgotten(Learner("naive", epochs=20))
    assert sfsvi.accuracy(*range(5)) > 90


def test_more_tasks_than_points_are_no_fault():
    learner = Learner(SFSVI, network("gaussian"), context_points=1, batch_size=ALL).train(0, 1, 2)
    assert learner.method.trained_heads == [0, 1, 2]


def test_the_old_network_is_one_function():
    """Dropout in what it says would be noise in what the outputs are held to."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        BayesianLinear(64, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), BayesianLinear(16, 10)
    )
    method = Learner(Recorded, net, batch_size=ALL).train(0, 1).method
    _, x, old = method.recorded[-1]
    tasks = torch.zeros(len(x), dtype=torch.int64)
    with torch.no_grad():
        first, again = (method.moments(old, x, tasks) for _ in range(2))
    assert torch.equal(first.mean, again.mean)
    assert torch.equal(first.variance, again.variance)
