import learners
import pytest
import torch
from learners import score

from vcl_radial.errors import UserError
from vcl_radial.strategies.frozen_body import FrozenBody
from vcl_radial.strategies.joint import Joint
from vcl_radial.strategies.naive import Naive


def make(method, network, stream, epochs=15):
    return learners.make(method, network, stream, train_epochs=epochs, eval_samples=1)


def accuracies(strategy, experiences):
    return [score(strategy, [experience]) for experience in experiences]


def test_fine_tuning_one_head_forgets_all_but_the_newest_task(
    make_network, single_head_stream, single_head_benchmark
):
    naive = make(Naive, make_network(None, False), single_head_stream)
    torch.manual_seed(0)
    for experience in single_head_benchmark.train_stream:
        naive.train(experience, eval_streams=[])
    found = accuracies(naive, single_head_benchmark.test_stream)
    assert found[-1] > 80
    assert sum(found[:-1]) / 4 < 30


def test_joint_training_learns_all_tasks_at_once(scenario, make_network):
    multi_head, stream, benchmark = scenario
    joint = make(Joint, make_network(None, multi_head), stream)
    before = accuracies(joint, benchmark.test_stream)
    joint.train(benchmark.train_stream, eval_streams=[])
    found = accuracies(joint, benchmark.test_stream)
    assert sum(found) / len(found) > 90 > sum(before) / len(before)


def test_a_method_without_memory_has_no_penalty(
    make_network, multi_head_stream, multi_head_benchmark
):
    naive = make(Naive, make_network(None), multi_head_stream, epochs=1)
    naive.train(multi_head_benchmark.train_stream[0], eval_streams=[])
    assert naive.penalty() == 0
    assert all(torch.isfinite(p).all() for p in naive.model.parameters())


def test_a_frozen_body_is_the_first_tasks(scenario, make_network):
    multi_head, stream, benchmark = scenario
    frozen = make(FrozenBody, make_network(None, multi_head), stream, epochs=1)

    def train(experience):
        before = [layer.weight.clone() for layer in frozen.network.body]
        frozen.train(experience, eval_streams=[])
        pairs = zip(before, frozen.network.body, strict=True)
        return [not torch.equal(old, layer.weight) for old, layer in pairs]

    first, second, *_ = benchmark.train_stream
    assert all(train(first))
    assert not any(train(second))
    head = next(iter(frozen.network.head.parameters()))
    assert head.requires_grad


def test_a_network_without_heads_cannot_keep_one_free(multi_head_stream, multi_head_benchmark):
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2))
    frozen = make(FrozenBody, network, multi_head_stream, epochs=1)
    with pytest.raises(UserError, match="MultiHead"):
        frozen.train(multi_head_benchmark.train_stream[0], eval_streams=[])
