"""Exact heads on the body of a network that learns the first task by steps and is held then."""

import copy
from functools import partial

import pytest
import torch
from scenarios import Learner, in_the_middle, network
from torch.optim import Adam

from vcl_radial.conformance import recipe_for, repeating
from vcl_radial.conformance.subject import Subject
from vcl_radial.likelihoods import Gaussian
from vcl_radial.methods.bayes_linear import BayesLinear
from vcl_radial.methods.tasks import Batch, Task
from vcl_radial.nn import MLP, WithHeads
from vcl_radial.training.loop import TaskLoop


def learner(multi_head, **settings):
    net = network(None, multi_head, hidden=(12,))
    return Learner(BayesLinear, net, features="first-task-body", epochs=3, lr=1e-2, **settings)


def weights(learner):
    return copy.deepcopy(learner.network.features.body.state_dict())


@pytest.mark.parametrize("multi_head", [False, True])
def test_the_first_task_trains_the_body_and_no_other_does(multi_head):
    trained = learner(multi_head)
    before = weights(trained)
    trained.train(0)
    after = weights(trained)
    assert not torch.equal(before["body.0.weight"], after["body.0.weight"])
    assert trained.losses[-1] < trained.losses[0]
    trained.train(1)
    assert all(torch.equal(after[name], tensor) for name, tensor in weights(trained).items())


def test_the_heads_are_those_of_a_body_that_has_these_weights():
    trained = learner(False).train(0, 1)
    net = network(None, False, hidden=(12,))
    of_body = Learner(BayesLinear, net, features="body")
    of_body.network.features.body.load_state_dict(weights(trained))
    of_body.train(0, 1)
    x = of_body.stream.inputs(0, "test")
    for mine, other in zip(
        trained.network.head.parameters(), of_body.network.head.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other)
    torch.testing.assert_close(trained.method.predict(x), of_body.method.predict(x))


def test_while_it_is_trained_the_network_predicts_with_the_head_that_is_trained():
    trained = learner(False)
    trained.begin(0)
    for _ in range(10):
        trained.loop.learn(trained.batches(), 0.0)
    x, features = trained.stream.inputs(0, "test"), trained.network.features
    expected = features.taken(features.body(x)).log_softmax(1)
    torch.testing.assert_close(trained.predictions(0), expected)
    assert (expected.argmax(1) == trained.targets(0)).float().mean() > 0.9


def test_numbers_have_an_exact_head_on_a_trained_body():
    torch.manual_seed(0)
    x = torch.randn(400, 3)
    data = Batch(x, x.prod(1) + 0.05 * torch.randn(400), 0)
    losses = {}

    def nll(method):
        return -method.predict(x).log_density(data.y).mean()

    for features in ("body", "first-task-body"):
        torch.manual_seed(1)
        net = MLP(3, 1, hidden=(30,), multi_head=False, posterior=None)
        method = BayesLinear(net, likelihood=Gaussian(), features=features)
        loop = TaskLoop(method, Task(0, 400, lambda: [data]), lambda m: Adam(m.parameters(), 0.02))
        losses[features] = [nll(method)]
        loop.learn([data] * 300, 0.0)
        losses[features].append(nll(method))
        loop.end()
        losses[features].append(nll(method))
    start, trained, end = losses["first-task-body"]
    assert trained < start - 0.5
    assert end < losses["body"][-1] - 0.5


def test_the_averages_of_a_held_bodys_norms_are_the_first_tasks():
    body = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU()
    )
    net = WithHeads(body, (64,), 10, multi_head=False, posterior=None)
    trained = Learner(BayesLinear, net, features="first-task-body").train(0)
    after = weights(trained)
    assert after["body.2.running_mean"].any()
    trained.train(1)
    assert all(torch.equal(after[name], tensor) for name, tensor in weights(trained).items())


def test_it_is_trained_again_where_an_earlier_state_is_taken_over():
    trained, straight = learner(False), learner(False).train(0)
    before = copy.deepcopy(trained.method.state_dict())
    trained.train(0, 1).method.load_state_dict(before)
    assert torch.equal(trained.train(0).predictions(0), straight.predictions(0))


def test_steps_draw_random_numbers_where_they_train_a_body():
    """So the check of seeds looks for other numbers from another seed."""
    verdicts = [
        repeating.seeds(Subject(recipe_for(name, {"options.units": 20})))
        for name in ("bayes-linear", "bayes-linear-first-body")
    ]
    assert "closed form" in verdicts[0]
    assert verdicts[1].endswith("another one others")


@pytest.mark.parametrize("task", [0, 1])
def test_it_goes_on_in_the_middle_of_a_task(task, tmp_path):
    whole, again = in_the_middle(partial(learner, False), task, tmp_path / "state")
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name]), name
    whole.train(task + 1)
    again.train(task + 1)
    assert torch.equal(whole.predictions(task), again.predictions(task))


def test_the_noise_begins_as_without_a_trainer():
    task = Task(0, 90, list)
    begun = Gaussian()
    begun.begin_task(task.points)
    method = BayesLinear(
        MLP(3, 1, hidden=(4,), multi_head=False, posterior=None),
        likelihood=Gaussian(),
        features="first-task-body",
    )
    method.begin_task(task)
    for name, value in begun.state_dict().items():
        assert torch.equal(method.likelihood.state_dict()[name], value), name
