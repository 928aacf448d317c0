import copy

import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MTSimpleMLP
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import (
    make,
    predictions,
    standing,
    train,
    weights,
)
from torch.nn.functional import cross_entropy

from vcl_radial.errors import UserError
from vcl_radial.methods.lwf import distillation
from vcl_radial.strategies.lwf import LwF
from vcl_radial.strategies.naive import Naive


def test_a_temperature_of_0_is_named(make_network, multi_head_stream):
    with pytest.raises(UserError, match="temperature = 0 must be above 0"):
        make(LwF, make_network(None), multi_head_stream, temperature=0)


@settings(max_examples=50, deadline=None)
@given(temperature=st.floats(0.5, 8), seed=st.integers(0, 10_000))
def test_distillation_is_least_where_the_networks_agree_and_there_the_entropy(temperature, seed):
    torch.manual_seed(seed)
    before = 3 * torch.randn(4, 5, dtype=torch.float64)
    entropy = torch.distributions.Categorical(logits=before / temperature).entropy().mean()
    # A shift of all logits of a point is the same prediction.
    now = (before + torch.randn(4, 1)).requires_grad_()
    agreeing = distillation(now, before, temperature)
    torch.testing.assert_close(agreeing, entropy)
    (gradient,) = torch.autograd.grad(agreeing, now)
    torch.testing.assert_close(gradient, torch.zeros_like(now), atol=1e-12, rtol=0)
    other = distillation(before + 0.1 * torch.randn(4, 5), before, temperature)
    assert other > entropy


def test_a_task_starts_at_its_nll_and_the_entropies_of_the_old_heads(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    lwf = make(LwF, network, multi_head_stream, strength=0.7, temperature=3.0, train_mb_size=1000)
    train(lwf, tasks[:2])
    losses = standing(lwf, tasks[2])
    x, y = multi_head_stream.inputs(2, "train"), multi_head_stream.labels(2, "train")
    with torch.no_grad():
        expected = cross_entropy(network(x, 2), y)
        for head in (0, 1):
            tempered = torch.distributions.Categorical(logits=network(x, head) / 3.0)
            expected += 0.7 * tempered.entropy().mean()
    torch.testing.assert_close(losses, [expected])


def test_only_heads_with_a_past_are_distilled(
    make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)
    network = make_network(None)
    lwf = make(LwF, network, multi_head_stream)
    network.head.adapt(range(5))
    train(lwf, tasks[:1])
    before = {task: network.head.head(task).weight.clone() for task in range(5)}
    train(lwf, tasks[1:2])
    moved = {
        task for task in range(5) if not torch.equal(network.head.head(task).weight, before[task])
    }
    assert moved == {0, 1}
    assert lwf.trains_old_heads


def test_with_one_head_only_trained_classes_are_distilled(
    make_network, single_head_stream, single_head_benchmark
):
    tasks = list(single_head_benchmark.train_stream)
    network = make_network(None, False)
    lwf = make(LwF, network, single_head_stream, train_mb_size=1000)
    train(lwf, tasks[:2])
    assert lwf.classes == {0: [0, 1, 2, 3]}
    losses = standing(lwf, tasks[2])
    x, y = single_head_stream.inputs(2, "train"), single_head_stream.labels(2, "train")
    with torch.no_grad():
        logits = network(x)
        entropy = torch.distributions.Categorical(logits=logits[:, :4] / 2).entropy().mean()
        torch.testing.assert_close(losses, [cross_entropy(logits, y) + entropy])


def test_without_strength_it_is_fine_tuning(scenario, make_network):
    multi_head, stream, benchmark = scenario
    ends = []
    for method, options in ((LwF, {"strength": 0.0}), (Naive, {})):
        strategy = make(method, make_network(None, multi_head), stream, **options)
        train(strategy, list(benchmark.train_stream)[:3])
        ends.append(weights(strategy))
    assert torch.equal(*ends)


def test_distilled_heads_forget_less(make_network, multi_head_stream, multi_head_benchmark):
    tasks, tests = list(multi_head_benchmark.train_stream), list(multi_head_benchmark.test_stream)
    drift = []
    for strength in (0.0, 1.0):
        lwf = make(LwF, make_network(None), multi_head_stream, train_epochs=10, strength=strength)
        train(lwf, tasks[:1])
        before = predictions(lwf, tests[:1]).exp()
        train(lwf, tasks[1:3])
        drift.append((predictions(lwf, tests[:1]).exp() - before).abs().mean())
    assert drift[1] < 0.7 * drift[0]


def test_a_model_whose_heads_are_not_ours_is_refused(multi_head_stream):
    with pytest.raises(UserError, match="LwF cannot tell the heads of a MTSimpleMLP apart"):
        make(LwF, MTSimpleMLP(64), multi_head_stream)


def test_the_old_network_answers_as_in_evaluation(single_head_stream, single_head_benchmark):
    """Dropout in what it says would be noise in the targets."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(16, 10),
    )
    answers = []

    class Witness(SupervisedPlugin):
        def before_forward(self, strategy, **kwargs):
            if strategy.method._old is not None:
                with torch.no_grad():
                    answers.append((strategy.method._old(strategy.mb_x), before(strategy.mb_x)))

    lwf = make(LwF, network, single_head_stream, plugins=[Witness()])
    tasks = list(single_head_benchmark.train_stream)
    train(lwf, tasks[:1])
    before = copy.deepcopy(network).eval()
    train(lwf, tasks[1:2])
    assert answers
    assert all(torch.equal(*pair) for pair in answers)
    assert network.training
