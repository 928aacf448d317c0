import pytest
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.logging import InteractiveLogger
from avalanche.training.plugins import EvaluationPlugin

from vcl_radial.strategies.callbacks import STEP_EVENTS, listens
from vcl_radial.strategies.naive import Naive
from vcl_radial.strategies.scores import Scores


def recorder(*events):
    """A plugin with just these callbacks, and what it heard."""
    heard = []
    methods = {
        event: lambda self, strategy, event=event, **kwargs: heard.append(event) for event in events
    }
    return type("Recorder", (SupervisedPlugin,), methods)(), heard


def train(make_network, stream, benchmark, **settings):
    import torch

    naive = Naive(
        model=make_network(None),
        optimizer=lambda model: torch.optim.Adam(model.parameters()),
        train_mb_size=100,
        tensor_stream=stream,
        **settings,
    )
    naive.train(benchmark.train_stream[0], eval_streams=[])
    return naive


def test_whoever_listens_is_told_of_every_step_in_order(
    make_network, multi_head_stream, multi_head_benchmark
):
    plugin, heard = recorder(*STEP_EVENTS)
    naive = train(
        make_network,
        multi_head_stream,
        multi_head_benchmark,
        plugins=[plugin],
        evaluator=EvaluationPlugin(Scores()),
    )
    steps = naive.clock.train_iterations
    assert steps > 1
    assert heard == list(STEP_EVENTS) * steps


@pytest.mark.parametrize("event", STEP_EVENTS)
def test_only_a_plugin_with_a_callback_listens(event):
    silent, _ = recorder()
    other, _ = recorder(event)
    assert listens(other, event)
    assert not listens(silent, event)
    assert not listens(EvaluationPlugin(Scores()), event)


def test_an_evaluator_listens_where_its_metrics_or_loggers_do():
    with_metric = EvaluationPlugin(accuracy_metrics(minibatch=True), loggers=[])
    with_logger = EvaluationPlugin(Scores(), loggers=[InteractiveLogger()])
    for evaluator in (with_metric, with_logger):
        assert listens(evaluator, "after_training_iteration")
        assert not listens(evaluator, "before_backward")


def test_metrics_of_batches_are_still_measured(
    make_network, multi_head_stream, multi_head_benchmark
):
    evaluator = EvaluationPlugin(accuracy_metrics(minibatch=True), loggers=[])
    train(make_network, multi_head_stream, multi_head_benchmark, evaluator=evaluator)
    (name,) = (key for key in evaluator.get_last_metrics() if "Acc_MB" in key)
    assert len(evaluator.get_all_metrics()[name][1]) > 1
