import torch
from avalanche.core import SupervisedPlugin
from learners import (
    make,
    predictions,
    score,
    scores_of,
    train,
)
from torch.optim import Adam

from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.single_task import SingleTask


def test_neither_order_nor_number_of_the_tasks_matters(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    found = []
    for order in ((0, 1, 2), (2, 0, 1), (1,)):
        alone = make(SingleTask, make_network(None, multi_head), stream)
        train(alone, [tasks[task] for task in order])
        found.append(predictions(alone, tests[1:2]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_each_task_is_learnt_as_if_it_were_the_only_one(scenario, make_network):
    multi_head, stream, benchmark = scenario
    tasks, tests = list(benchmark.train_stream), list(benchmark.test_stream)
    alone = make(SingleTask, make_network(None, multi_head), stream)
    train(alone, tasks[:3])
    for task in range(3):
        naive = make(Naive, make_network(None, multi_head), stream)
        train(naive, tasks[task : task + 1])
        expected = predictions(naive, tests[task : task + 1])
        assert torch.equal(predictions(alone, tests[task : task + 1]), expected)


def test_the_networks_of_the_tasks_share_nothing(
    make_network, multi_head_stream, multi_head_benchmark
):
    alone = make(SingleTask, make_network(None), multi_head_stream)
    tests = list(multi_head_benchmark.test_stream)
    tasks = list(multi_head_benchmark.train_stream)
    before = predictions(alone, tests)
    train(alone, tasks[:1])
    first = predictions(alone, tests[:1])
    # Tasks to come are predicted as they were before any training.
    size = len(first)
    assert torch.equal(predictions(alone, tests)[size:], before[size:])
    train(alone, tasks[1:3])
    assert torch.equal(predictions(alone, tests[:1]), first)
    places = [p.data_ptr() for network in alone.networks.values() for p in network.parameters()]
    assert len(places) == len(set(places))


def test_a_stock_optimiser_trains_every_network(
    make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network(None)
    optimizer = Adam(network.parameters(), lr=1e-3)
    alone = make(SingleTask, network, multi_head_stream, optimizer=optimizer, train_epochs=10)
    train(alone, list(multi_head_benchmark.train_stream)[:3])
    assert score(alone, list(multi_head_benchmark.test_stream)[:3]) > 90


def test_in_the_middle_of_a_task_its_own_network_predicts(
    make_network, multi_head_stream, multi_head_benchmark
):
    alone = make(SingleTask, make_network(None), multi_head_stream, train_epochs=5, eval_every=1)
    scores = scores_of(alone)
    found = []

    class Witness(SupervisedPlugin):
        def after_eval_exp(self, strategy, **kwargs):
            found.append(scores.values["nll"])

    alone.plugins.append(Witness())
    tests = multi_head_benchmark.test_stream[:1]
    alone.train(multi_head_benchmark.train_stream[0], eval_streams=[tests])
    assert found[4] < 0.8 * found[0]
