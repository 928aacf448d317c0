"""Callbacks of steps are left out where nobody handles, and only there."""

import pytest
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.logging import InteractiveLogger
from avalanche.training.plugins import EvaluationPlugin
from learners import Driven, witness

from vcl_radial.integrations.avalanche.callbacks import STEP_EVENTS, handles
from vcl_radial.integrations.avalanche.scores import Scores


def test_a_plugin_with_callbacks_is_called_in_every_step_in_order():
    called = []
    callbacks = {event: lambda _, event=event: called.append(event) for event in STEP_EVENTS}
    driven = Driven("naive", plugins=[witness(**callbacks)]).train(0)
    steps = driven.strategy.clock.train_iterations
    assert steps > 1
    assert called == list(STEP_EVENTS) * steps


@pytest.mark.parametrize("event", STEP_EVENTS)
def test_only_a_plugin_with_a_callback_listens(event):
    assert handles(witness(**{event: print}), event)
    assert not handles(witness(), event)
    assert not handles(EvaluationPlugin(Scores()), event)


def test_an_evaluator_listens_where_its_metrics_or_loggers_do():
    with_metric = EvaluationPlugin(accuracy_metrics(minibatch=True), loggers=[])
    with_logger = EvaluationPlugin(Scores(), loggers=[InteractiveLogger()])
    for evaluator in (with_metric, with_logger):
        assert handles(evaluator, "after_training_iteration")
        assert not handles(evaluator, "before_backward")


def test_metrics_of_batches_are_still_measured():
    evaluator = EvaluationPlugin(accuracy_metrics(minibatch=True), loggers=[])
    Driven("naive", evaluator=evaluator).train(0)
    (name,) = (key for key in evaluator.get_last_metrics() if "Acc_MB" in key)
    assert len(evaluator.get_all_metrics()[name][1]) > 1
