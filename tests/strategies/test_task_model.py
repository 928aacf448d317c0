import pytest
import torch
from avalanche.core import SupervisedPlugin
from avalanche.models import MultiTaskModule
from avalanche.training.plugins import LwFPlugin
from learners import make, predictions, train

from vcl_radial.nn import BayesianLinear
from vcl_radial.strategies.coreset_vcl import CoresetVCL
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.single_task import SingleTask
from vcl_radial.strategies.task_model import TaskModel
from vcl_radial.strategies.vcl import VCL


def test_it_knows_the_tasks_that_it_was_trained_on_from_its_state_too(
    make_network, multi_head_stream, multi_head_benchmark, tmp_path
):
    """Without a label it answers for every task it knows, as Avalanche's LwF asks it to."""
    naive = make(Naive, make_network(None), multi_head_stream, eval_samples=1)
    train(naive, list(multi_head_benchmark.train_stream)[1:3])
    naive.eval(list(multi_head_benchmark.test_stream))  # heads of the others are there, untrained
    torch.save(naive.state_dict(), tmp_path / "state")
    again = TaskModel(make_network(None), eval_samples=1).eval()
    assert again(torch.zeros(3, 64), None) == {}
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True)["model"])
    naive.model.eval()
    x = torch.rand(3, 64)
    expected, found = naive.model(x, None), again(x, None)
    assert list(found) == [1, 2]
    for task in (1, 2):
        assert torch.equal(found[task], expected[task])
    assert again.max_class_label == naive.model.max_class_label == 2


@pytest.mark.parametrize("stop", [False, True])
def test_avalanches_own_lwf_trains_on_it(
    stop, make_network, multi_head_stream, multi_head_benchmark
):
    tasks = list(multi_head_benchmark.train_stream)[:3]
    plugin = LwFPlugin()

    def fresh():
        return make(Naive, make_network(None), multi_head_stream, plugins=[plugin])

    strategy = fresh()
    for experience in tasks:
        if stop:
            state, strategy = strategy.state_dict(), fresh()
            strategy.load_state_dict(state)
        before = {n: w.clone() for n, w in strategy.network.head.named_parameters()}
        train(strategy, [experience])
        moved = {
            n
            for n, w in before.items()
            if not torch.equal(w, strategy.network.head.state_dict()[n])
        }
        assert {int(name.split(".")[1]) for name in moved} == set(
            range(experience.current_experience)
        )


class Foreign(MultiTaskModule):
    """Somebody else's model: it gives logits in evaluation too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = BayesianLinear(64, 2)

    def forward_single_task(self, x, task_label):
        return 5 * self.layer(x)


@pytest.mark.parametrize("method", [Naive, VCL, CoresetVCL, SingleTask])
def test_of_somebody_elses_model_the_log_predictive_is_scored(
    method, multi_head_stream, multi_head_benchmark
):
    strategy = make(method, Foreign(), multi_head_stream)
    train(strategy, list(multi_head_benchmark.train_stream)[:1])
    sums = predictions(strategy, multi_head_benchmark.test_stream[:1]).exp().sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_with_several_training_samples_the_output_is_their_mean_probability(
    make_network, multi_head_stream, multi_head_benchmark
):
    sums = []

    class Witness(SupervisedPlugin):
        def after_forward(self, strategy, **kwargs):
            sums.append(strategy.mb_output.detach().exp().sum(1))

    vcl = make(VCL, make_network(), multi_head_stream, train_samples=3, plugins=[Witness()])
    train(vcl, list(multi_head_benchmark.train_stream)[:1])
    assert sums
    for each in sums:
        torch.testing.assert_close(each, torch.ones_like(each))
