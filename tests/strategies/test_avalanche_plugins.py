"""Plugins of Avalanche with methods of the suite."""

import pytest
import torch
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import (
    EarlyStoppingPlugin,
    EvaluationPlugin,
    EWCPlugin,
    GEMPlugin,
    LwFPlugin,
    ReplayPlugin,
)
from learners import Driven, witness
from scenarios import network

PLUGINS = {
    "ewc": lambda: EWCPlugin(100.0),
    "lwf": LwFPlugin,
    "replay": lambda: ReplayPlugin(50),
    "gem": lambda: GEMPlugin(20, 0.5),
}


@pytest.mark.parametrize("method", ["naive", "vcl"])
@pytest.mark.parametrize("name", PLUGINS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_a_plugin_changes_the_training_of_the_second_task(name, method, multi_head):
    """With several heads (task-incremental) and one (class-incremental)."""
    if name == "gem":
        pytest.importorskip("quadprog", reason="GEM's solver: pip install vcl-radial[gem]")
    posterior = None if method == "naive" else "gaussian"
    ends = []
    for plugins in ([], [PLUGINS[name]()]):
        settings = {"plugins": plugins, "train_epochs": 2}
        driven = Driven(method, network(posterior, multi_head), **settings).train(0, 1)
        ends.append(driven.network.body[0].state_dict())
        assert all(torch.isfinite(w).all() for w in driven.network.parameters())
    key = next(name for name in ends[0] if name.endswith(("weight", "mean")))
    assert not torch.equal(ends[0][key], ends[1][key])


def test_early_stopping_ends_a_task_that_does_not_improve():
    epochs = []
    plugin = EarlyStoppingPlugin(patience=2, val_stream_name="test_stream", verbose=False)
    count = witness(after_training_epoch=lambda strategy: epochs.append(1))
    evaluator = EvaluationPlugin(accuracy_metrics(stream=True), loggers=[])
    settings = {"evaluator": evaluator, "eval_every": 1, "train_epochs": 30}
    driven = Driven("naive", lr=1e-30, plugins=[plugin, count], **settings)
    driven.strategy.train(driven.tasks[0], eval_streams=[[driven.tests[0]]])
    assert 2 <= len(epochs) <= 4
