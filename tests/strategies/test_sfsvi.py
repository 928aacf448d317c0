import pytest
import torch
from avalanche.models import MTSimpleMLP
from learners import (
    make,
    score,
    train,
)
from torch.distributions import Normal, kl_divergence

from vcl_radial.errors import UserError
from vcl_radial.methods.sfsvi import function_kl
from vcl_radial.nn import BayesianLinear
from vcl_radial.nn.linearised import Moments
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.sfsvi import SFSVI

FAMILIES = ["gaussian", "radial"]


class Told(SFSVI):
    """Keeps, for each step, the penalty and what it was computed from."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.told = []

    def penalty(self):
        penalty = super().penalty()
        self.told.append((penalty.item(), self.mb_x.clone(), self.method._old))
        return penalty

    def optimizer_step(self):
        """Stay where it is."""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_task_is_held_to_a_wide_function(
    family, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(
        Told, make_network(family), multi_head_stream, context_points=12, function_scale=3.0
    )
    first = multi_head_benchmark.train_stream[0]
    train(strategy, [first])
    penalty, x, old = strategy.told[0]
    assert old is None
    with torch.no_grad():
        now = strategy.method.moments(strategy.network, x[:12], torch.zeros(12, dtype=torch.int64))
    kl = kl_divergence(Normal(now.mean, now.variance.sqrt()), Normal(0.0, 3.0)).sum()
    assert penalty == pytest.approx(len(first.dataset) / 12 * kl.item(), rel=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_later_task_starts_at_0_and_is_held_to_the_old_heads(
    family, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(SFSVI, make_network(family), multi_head_stream)
    tasks = list(multi_head_benchmark.train_stream)
    train(strategy, tasks[:2])
    told = make(Told, strategy.network, multi_head_stream, context_points=10)
    told.load_state_dict(strategy.state_dict())
    train(told, tasks[2:3])
    assert all(penalty == pytest.approx(0, abs=1e-3) for penalty, _, _ in told.told)

    # Another body than the one that the task started with.
    class Moved(Told):
        def penalty(self):
            if not self.told:
                with torch.no_grad():
                    for layer in self.network.body:
                        for block in layer.weights.posterior_blocks():
                            block.mean.mul_(1.01)
            return super().penalty()

    moved = make(Moved, strategy.network, multi_head_stream, context_points=10)
    moved.load_state_dict(strategy.state_dict())
    moved.network.head.adapt([2])
    train(moved, tasks[2:3])
    penalty, x, old = moved.told[0]
    kl = 0.0
    with torch.no_grad():
        for head, part in ((0, x[:10:2]), (1, x[1:10:2])):
            heads = torch.full((5,), head)
            q, p = (moved.method.moments(net, part, heads) for net in (moved.network, old))
            pair = (Normal(m.mean, m.variance.sqrt()) for m in (q, p))
            kl += kl_divergence(*pair).sum().item()
    assert kl > 0
    assert penalty == pytest.approx(len(tasks[2].dataset) / 10 * kl, rel=1e-4)


def test_the_kl_is_0_where_nothing_has_changed_and_above_elsewhere():
    torch.manual_seed(0)
    here = Moments(torch.randn(5, 3).double(), torch.rand(5, 3).double() + 0.1)
    assert function_kl(here, here).item() == 0
    for other in (Moments(here.mean + 0.1, here.variance), Moments(here.mean, 1.1 * here.variance)):
        assert function_kl(other, here).item() > 0
        assert function_kl(here, other).item() > 0


@pytest.mark.slow
def test_less_is_forgotten_than_by_fine_tuning(
    make_network, multi_head_stream, multi_head_benchmark
):
    tests = list(multi_head_benchmark.test_stream)

    def forgotten(strategy):
        """By how many points the tasks are worse at the end than when they were learnt."""
        learnt = []
        for task, test in zip(multi_head_benchmark.train_stream, tests, strict=True):
            train(strategy, [task])
            learnt.append(score(strategy, [test]))
        return sum(learnt) / len(learnt) - score(strategy, tests)

    settings = {"train_epochs": 20}
    sfsvi = make(SFSVI, make_network("gaussian"), multi_head_stream, **settings)
    naive = make(Naive, make_network(None), multi_head_stream, **settings)
    assert forgotten(sfsvi) < 0.3 < forgotten(naive)
    assert score(sfsvi, tests) > 90


def test_more_tasks_than_points_are_no_fault(make_network, multi_head_stream, multi_head_benchmark):
    strategy = make(SFSVI, make_network("gaussian"), multi_head_stream, context_points=1)
    train(strategy, list(multi_head_benchmark.train_stream)[:3])
    assert strategy.method.seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_points": 0}, r"options\.context_points = 0 must be at least 1"),
        ({"function_scale": 0.0}, r"options\.function_scale = 0\.0 must be above 0"),
    ],
)
def test_an_impossible_option_is_named(options, message, make_network, multi_head_stream):
    with pytest.raises(UserError, match=message):
        make(SFSVI, make_network("gaussian"), multi_head_stream, **options)


def test_a_model_whose_heads_cannot_be_told_apart_is_named():
    model = MTSimpleMLP(64)
    model.features = BayesianLinear(64, 512)
    with pytest.raises(UserError, match="SFSVI cannot tell the heads of a MTSimpleMLP apart"):
        make(SFSVI, model, None)


def test_the_old_network_is_one_function(single_head_stream, single_head_benchmark):
    """Dropout in what it says would be noise in what the outputs are held to."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        BayesianLinear(64, 16), torch.nn.ReLU(), torch.nn.Dropout(0.5), BayesianLinear(16, 10)
    )
    told = make(Told, network, single_head_stream)
    train(told, list(single_head_benchmark.train_stream)[:2])
    _, x, old = told.told[-1]
    tasks = torch.zeros(len(x), dtype=torch.int64)
    with torch.no_grad():
        first, again = (told.method.moments(old, x, tasks) for _ in range(2))
    assert torch.equal(first.mean, again.mean)
    assert torch.equal(first.variance, again.variance)
