"""Exact heads on the body of a network that learns the first task by steps and is held then."""

import copy

import pytest
import torch
from scenarios import Learner, network

from vcl_radial.methods.bayes_linear import BayesLinear
from vcl_radial.predict import own_randomness


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


def test_it_goes_on_in_the_middle_of_the_first_task(tmp_path):
    def half(learner, begin):
        torch.manual_seed(3)
        if begin:
            learner.begin(0)
        torch.manual_seed(4)
        learner.loop.learn(learner.batches(), 0.0)

    whole = learner(False)
    half(whole, True)
    torch.save(whole.method.state_dict(), tmp_path / "state")
    torch.save(whole.optimizer.state_dict(), tmp_path / "optimizer")
    half(whole, False)
    whole.loop.end()
    again = learner(False)
    with own_randomness(0, torch.device("cpu")):
        again.begin(0)
    again.method.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    again.optimizer.load_state_dict(torch.load(tmp_path / "optimizer", weights_only=True))
    half(again, False)
    again.loop.end()
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name]), name
    whole.train(1)
    again.train(1)
    x = whole.stream.inputs(1, "test")
    assert torch.equal(whole.method.predict(x), again.method.predict(x))
