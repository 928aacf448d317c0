"""What users of Avalanche give a strategy: criteria, schedulers, optimisers and plugins."""

import pytest
import torch
from avalanche.training.plugins import EvaluationPlugin, EWCPlugin, LRSchedulerPlugin
from torch import nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import StepLR

from vcl_radial.errors import UserError
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.vcl import VCL


def learner(method, network, optimizer=None, **settings):
    return method(
        model=network,
        optimizer=optimizer or (lambda model: SGD(model.parameters(), lr=0.1)),
        train_mb_size=100,
        evaluator=EvaluationPlugin(),
        **settings,
    )


@pytest.mark.parametrize(
    "criterion", [nn.MSELoss(), nn.CrossEntropyLoss(label_smoothing=0.1), lambda output, y: 0]
)
def test_another_criterion_is_refused_and_not_passed_by(criterion, make_network):
    learner(Naive, make_network(None), criterion=nn.CrossEntropyLoss())
    with pytest.raises(UserError, match=r"override criterion\(\) in a subclass"):
        learner(Naive, make_network(None), criterion=criterion)


def test_a_scheduler_of_an_optimiser_that_is_made_anew_is_refused(
    make_network, multi_head_benchmark
):
    network = make_network(None)
    optimizer = Adam(network.parameters(), lr=0.1)
    plugin = LRSchedulerPlugin(StepLR(optimizer, 1, 0.5))
    strategy = learner(Naive, network, plugins=[plugin])
    with pytest.raises(UserError, match="give optimizer as an instance"):
        strategy.train(multi_head_benchmark.train_stream[0])
    network = make_network(None)
    optimizer = SGD(network.parameters(), lr=0.1)
    plugin = LRSchedulerPlugin(StepLR(optimizer, 1, 0.5), reset_lr=False)
    strategy = learner(Naive, network, optimizer, plugins=[plugin])
    strategy.train(multi_head_benchmark.train_stream[0])
    assert strategy.optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


def test_groups_that_have_no_place_for_a_new_head_are_refused_in_words(
    make_network, multi_head_benchmark
):
    network = make_network()
    rhos = [p for name, p in network.named_parameters() if name.endswith("rho")]
    means = [p for name, p in network.named_parameters() if name.endswith("mean")]
    optimizer = SGD([{"params": means}, {"params": rhos, "lr": 1.0}], lr=0.1)
    with pytest.raises(UserError, match="as a function of the model"):
        learner(VCL, network, optimizer).train(multi_head_benchmark.train_stream[0])


def test_a_plugin_may_differentiate_what_a_model_says_in_evaluation(make_network, scenario):
    """Avalanche's EWC takes its importances so; they pull the second task back."""
    multi_head, _, benchmark = scenario
    ends = {}
    for strength in (0.0, 1e3):
        torch.manual_seed(0)
        plugins = [EWCPlugin(strength)]
        strategy = learner(Naive, make_network(None, multi_head), plugins=plugins, train_epochs=3)
        strategy.train(benchmark.train_stream[0])
        start = strategy.network.body[0].weight.detach().clone()
        strategy.train(benchmark.train_stream[1])
        ends[strength] = (strategy.network.body[0].weight - start).norm().item()
    assert 0 < ends[1e3] < 0.99 * ends[0.0], ends


def test_without_gradients_a_prediction_keeps_no_graph(make_network, multi_head_benchmark):
    strategy = learner(VCL, make_network(), eval_samples=2)
    strategy.train(multi_head_benchmark.train_stream[0])
    x = torch.rand(3, 64)
    strategy.model.eval()
    assert strategy.model(x, 0).requires_grad
    with torch.no_grad():
        assert not strategy.model(x, 0).requires_grad
