"""The references: fine-tuning, all tasks at once, each task alone, and a body that is frozen."""

import copy

import torch
from failing import refuses
from scenarios import Learner, network

from vcl_radial.nn.with_heads import WithHeads


def make(name, multi_head=True, **settings):
    return Learner(name, network(None, multi_head), **settings)


def test_fine_tuning_one_head_forgets_all_but_the_newest_task():
    naive = make("naive", False, epochs=15).train(*range(5))
    assert naive.accuracy(4) > 80
    assert naive.accuracy(*range(4)) < 30


def test_joint_training_learns_all_tasks_at_once(multi_head):
    joint = make("joint", multi_head, epochs=15, batch_size=64)
    assert joint.train(*range(5)).accuracy(*range(5)) > 90


def test_a_frozen_body_is_the_first_tasks(multi_head):
    learner = make("frozen_body", multi_head)

    def train(task):
        before = [layer.weight.clone() for layer in learner.network.body]
        learner.train(task)
        pairs = zip(before, learner.network.body, strict=True)
        return [not torch.equal(old, layer.weight) for old, layer in pairs]

    assert all(train(0))
    assert not any(train(1))
    assert all(weight.requires_grad for weight in learner.network.head.parameters())


def test_the_averages_of_a_frozen_bodys_norms_are_the_first_tasks():
    body = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU()
    )
    learner = Learner("frozen_body", WithHeads(body, (64,), 10, posterior=None))
    features = []
    for task in range(2):
        learner.train(task)
        with torch.no_grad():
            features.append(body.eval()(learner.stream.inputs(0, "test")))
        body.train()
    assert torch.equal(*features)
    assert features[0].any()


def test_a_frozen_body_thaws_where_an_earlier_state_is_taken_over():
    learner, straight = make("frozen_body"), make("frozen_body").train(0)
    learner.adapt(0, 1)
    before = copy.deepcopy(learner.method.state_dict())
    learner.train(1).method.load_state_dict(before)
    assert all(weight.requires_grad for weight in learner.network.body.parameters())
    assert torch.equal(learner.train(0).predictions(0), straight.predictions(0))


def test_a_network_without_heads_cannot_keep_one_free():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with refuses("MultiHead"):
        Learner("frozen_body", net).train(0)


def test_alone_a_task_is_learnt_as_if_it_were_the_only_one_in_whatever_order(multi_head):
    for order in ((0, 1, 2), (2, 0, 1)):
        alone = make("single_task", multi_head).train(*order)
        for task in order:
            expected = make("naive", multi_head).train(task).predictions(task)
            assert torch.equal(alone.predictions(task), expected)


def test_the_networks_of_the_tasks_share_nothing():
    alone = make("single_task")
    before = alone.predictions(*range(1, 5))
    first = alone.train(0).predictions(0)
    # Tasks to come are predicted as they were before any training.
    assert torch.equal(alone.predictions(*range(1, 5)), before)
    alone.train(1, 2)
    assert torch.equal(alone.predictions(0), first)
    networks = alone.method.networks.values()
    places = [p.data_ptr() for net in networks for p in net.parameters()]
    assert len(places) == len(set(places))


def test_in_the_middle_of_a_task_its_own_network_predicts():
    alone, values = make("single_task", epochs=5), []
    alone.train(0, after_step=lambda: values.append(alone.nll(0)))
    assert values[-1] < 0.8 * values[0]
