"""The model that Avalanche sees, and what its plugins do with it and with somebody else's."""

import pytest
import torch
from avalanche.models import MultiTaskModule
from avalanche.training.plugins import EWCPlugin, LwFPlugin
from learners import Driven, witness
from scenarios import copies, network
from torch.optim import SGD

from vcl_radial.integrations.avalanche.task_model import TaskModel
from vcl_radial.nn import BayesianLinear


def test_it_knows_the_tasks_that_it_was_trained_on_from_its_state_too(tmp_path):
    """Without a label it answers for every task it knows, as Avalanche's LwF asks it to."""
    naive = Driven("naive", eval_samples=1).train(1, 2)
    naive.predictions(*range(5))  # heads of the others are there, untrained
    torch.save(naive.strategy.state_dict(), tmp_path / "state")
    again = TaskModel(network(None), eval_samples=1).eval()
    assert again(torch.zeros(3, 64), None) == {}
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True)["model"])
    model, x = naive.strategy.model.eval(), torch.rand(3, 64)
    expected, outputs = model(x, None), again(x, None)
    assert list(outputs) == [1, 2]
    assert all(torch.equal(outputs[task], expected[task]) for task in (1, 2))
    assert again.max_class_label == model.max_class_label == 2


@pytest.mark.parametrize("stop", [False, True])
def test_avalanches_own_lwf_trains_on_it(stop):
    plugin = LwFPlugin()
    driven = Driven("naive", plugins=[plugin])
    for task in range(3):
        if stop:
            state, driven = driven.strategy.state_dict(), Driven("naive", plugins=[plugin])
            driven.strategy.load_state_dict(state)
        before = copies(driven.network.head)
        after = copies(driven.train(task).network.head)
        moved = {name for name, weight in before.items() if not torch.equal(weight, after[name])}
        assert {int(name.split(".")[1]) for name in moved} == set(range(task))


def test_avalanches_own_ewc_takes_its_gradients_in_evaluation_and_pulls_back(multi_head):
    ends = {}

    def sgd(model):
        return SGD(model.parameters(), lr=0.1)

    for strength in (0.0, 1e3):
        settings = {"plugins": [EWCPlugin(strength)], "train_epochs": 3, "optimizer": sgd}
        driven = Driven("naive", network(None, multi_head), train_mb_size=100, **settings).train(0)
        start = driven.network.body[0].weight.detach().clone()
        driven.train(1)
        ends[strength] = (driven.network.body[0].weight - start).norm().item()
    assert 0 < ends[1e3] < 0.99 * ends[0.0], ends


def test_without_gradients_a_prediction_keeps_no_graph():
    model, x = Driven("vcl", eval_samples=2).train(0).strategy.model.eval(), torch.rand(3, 64)
    assert model(x, 0).requires_grad
    with torch.no_grad():
        assert not model(x, 0).requires_grad


class Foreign(MultiTaskModule):
    """Somebody else's model: it gives logits in evaluation too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = BayesianLinear(64, 2)

    def forward_single_task(self, x, task_label):
        return 5 * self.layer(x)


@pytest.mark.parametrize("name", ["naive", "vcl", "coreset_vcl", "single_task"])
def test_of_somebody_elses_model_the_log_predictive_is_scored(name):
    sums = Driven(name, Foreign()).train(0).predictions(0).exp().sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_with_several_training_samples_the_output_is_their_mean_probability():
    sums = []
    look = witness(after_forward=lambda s: sums.append(s.mb_output.detach().exp().sum(1)))
    Driven("vcl", train_samples=3, plugins=[look]).train(0)
    assert sums
    for total in sums:
        torch.testing.assert_close(total, torch.ones_like(total))
