"""Runs in Avalanche's loop, with the plugins, metrics and loggers that settings name."""

import json

import pandas as pd
import pytest
from failing import refuses
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, TINY, accuracy_bytes, carried_out, tiny_run

from vcl_radial import run
from vcl_radial.cli.arguments import parse_setting
from vcl_radial.config.command_lines import set_arguments
from vcl_radial.reporting.gather import read_runs
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.track import Continual

METRICS = ["forgetting_metrics", {"name": "accuracy_metrics", "stream": True, "epoch": True}]
REPLAY = [{"name": "ReplayPlugin", "mem_size": 100}]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


def avalanche_run(method="naive", **settings):
    """A tiny run with keys of the table [avalanche]."""
    benchmark = settings.pop("benchmark", MULTI_HEAD)
    keys = {f"avalanche.{key}": value for key, value in settings.items()}
    return tiny_run(method, benchmark, **keys)


def metrics_of(run, out):
    return pd.read_csv(RunFolder(out, run).path / "avalanche.csv")


@pytest.mark.parametrize("benchmark", [MULTI_HEAD, SINGLE_HEAD])
@pytest.mark.parametrize("method", ["naive", "radial-vcl", "joint"])
def test_metrics_and_loggers_leave_the_numbers_of_the_trainer(tmp_path, method, benchmark):
    loggers = ["TextLogger", "CSVLogger", "TensorboardLogger"]
    settings = {"metrics": METRICS, "loggers": loggers, "benchmark": benchmark}
    driven, trained = avalanche_run(method, **settings), tiny_run(method, benchmark)
    for each in (driven, trained):
        carried_out(each, tmp_path)
    assert accuracy_bytes(driven, tmp_path) == accuracy_bytes(trained, tmp_path)
    log = RunFolder(tmp_path, driven).path / "avalanche" / "from-task-1"
    assert "Top1_Acc_Stream" in (log / "TextLogger.txt").read_text()
    assert (log / "CSVLogger" / "eval_results.csv").stat().st_size > 0
    assert list((log / "TensorboardLogger").iterdir())


def test_the_accuracy_that_avalanche_measures_is_that_of_the_run(tmp_path):
    spec = avalanche_run("radial-vcl", metrics=["accuracy_metrics"], benchmark=SINGLE_HEAD)
    carried_out(spec, tmp_path)
    metrics = metrics_of(spec, tmp_path).set_index(["task_trained", "metric"]).value
    scores = pd.read_csv(RunFolder(tmp_path, spec).path / "accuracy.csv")
    own = scores[(scores.metric == "accuracy") & (scores.task_trained == 3)]
    for task, accuracy in zip(own.task_evaluated, own.value, strict=True):
        name = f"Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp{task - 1:03}"
        assert 100 * metrics[3, name] == pytest.approx(accuracy)


def test_a_plugin_changes_the_run_and_its_metrics_are_in_table_and_report(tmp_path):
    settings = {**TINY, "avalanche.metrics": METRICS}
    scores = []
    for name, extra in (("with", {"avalanche.plugins": REPLAY}), ("without", {})):
        results = run(MULTI_HEAD, "naive", settings=settings | extra, out=tmp_path / name, jobs=1)
        assert results.failures.empty
        scores.append(results.summary().average_accuracy.item())
        table = results.table[results.table.metric == "StreamForgetting/eval_phase/test_stream"]
        assert list(table.after) == [1, 2, 3, 4, 5]
        assert set(table.task) == {0}
        assert set(table.part) == {"avalanche"}
        titles = [section.title for section in results._sections[MULTI_HEAD]]
        assert "Avalanche's metrics" in titles
    assert scores[0] != scores[1]


def test_an_early_stop_watches_the_validation_part(tmp_path):
    plugin = {"name": "EarlyStoppingPlugin", "patience": 1, "val_stream_name": "valid_stream"}
    settings = {"plugins": [plugin], "metrics": ["accuracy_metrics"], "eval_every": 1}
    keys = {f"avalanche.{key}": value for key, value in settings.items()}
    spec = tiny_run(epochs=20, learning_rate=1e-30, **keys)
    epochs = [e for e in carried_out(spec, tmp_path) if e.kind == "epoch" and e.task == 1]
    assert len(epochs) < 5


@pytest.mark.parametrize("method", ["naive", "radial-vcl"])
def test_a_run_without_plugins_resumes_after_its_last_task(tmp_path, method):
    spec = avalanche_run(method, loggers=["TextLogger"])
    carried_out(spec, tmp_path / "whole")
    carried_out(spec, tmp_path / "stopped", interrupt_at=("task", 2))
    events = carried_out(spec, tmp_path / "stopped")
    assert events[0].task == 2
    assert accuracy_bytes(spec, tmp_path / "stopped") == accuracy_bytes(spec, tmp_path / "whole")
    logs = RunFolder(tmp_path / "stopped", spec).path / "avalanche"
    assert {log.name for log in logs.iterdir()} == {"from-task-1", "from-task-3"}


def test_a_run_with_plugins_starts_again_and_ends_with_the_same_numbers(tmp_path):
    spec = avalanche_run(plugins=REPLAY, metrics=METRICS)
    carried_out(spec, tmp_path / "whole")
    carried_out(spec, tmp_path / "stopped", interrupt_at=("task", 3))
    events = carried_out(spec, tmp_path / "stopped")
    assert events[0].task == 0
    assert accuracy_bytes(spec, tmp_path / "stopped") == accuracy_bytes(spec, tmp_path / "whole")
    (finished,) = read_runs([RunFolder(tmp_path / "stopped", spec).path])
    assert finished.tables["avalanche"].equals(metrics_of(spec, tmp_path / "whole"))


@pytest.mark.parametrize(
    ("key", "part", "words"),
    [
        ("plugins", "ReplayPlugn", ["ReplayPlugin"]),
        ("plugins", {"name": "ReplayPlugin", "mem_sise": 1}, ["mem_sise", "mem_size"]),
        ("plugins", "LRSchedulerPlugin", ["scheduler"]),
        ("metrics", "Accuracy", ["Accuracy"]),
        ("loggers", "Textlogger", ["TextLogger"]),
        ("plugins", "nowhere:Plugin", ["nowhere"]),
    ],
)
def test_a_wrong_part_is_one_line_before_any_training(key, part, words):
    with refuses(f"avalanche.{key}", *words):
        Continual().check_runs([avalanche_run(**{key: [part]})])


def test_metrics_that_measure_nothing_and_a_missing_validation_part_are_refused():
    nothing = avalanche_run(metrics=[{"name": "accuracy_metrics", "stream": False}])
    with refuses("avalanche.metrics", "accuracy_metrics"):
        Continual().check_data([nothing], None)
    with refuses("avalanche.eval_every", "stream.validation"):
        tiny_run(**{"avalanche.eval_every": 1, "stream.validation": 0.0})


def test_a_plugin_of_the_users_own_trains_and_its_file_is_a_part_of_the_run(tmp_path, monkeypatch):
    (tmp_path / "my_plugins.py").write_text(
        "from avalanche.core import SupervisedPlugin\n"
        "class Stop(SupervisedPlugin):\n"
        "    def after_training_epoch(self, strategy, **kwargs):\n"
        "        strategy.stop_training()\n"
    )
    monkeypatch.chdir(tmp_path)
    keys = {"avalanche.plugins": ["my_plugins:Stop"]}
    stopped, once = (tiny_run(epochs=n, **more) for n, more in ((5, keys), (1, {})))
    stopped = stopped.on_data(None)
    assert stopped.code is not None
    Continual().check_runs([stopped])
    for each in (stopped, once):
        carried_out(each, tmp_path)
    assert accuracy_bytes(stopped, tmp_path) == accuracy_bytes(once, tmp_path)


def test_the_command_of_a_run_names_its_plugins_again():
    settings = {"avalanche.plugins": REPLAY, "avalanche.metrics": METRICS, "epochs": 3}
    assert dict(map(parse_setting, set_arguments(settings))) == settings


def test_only_runs_with_the_table_have_another_digest():
    spec = tiny_run()
    assert "avalanche" not in json.dumps(spec.settings())
    assert avalanche_run(plugins=[]).digest() != spec.digest()
