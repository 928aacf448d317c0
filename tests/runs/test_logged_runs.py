"""Curves in TensorBoard and wandb: what they hold, and that a run is the same with and without."""

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from failing import fails
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, accuracy_bytes, event_of, tiny_run

from vcl_radial.cli import main
from vcl_radial.errors import UserError
from vcl_radial.integrations.loggers import loggers_of
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.track import Continual
from vcl_radial.tracks.continual.training import ContinualRun, EpochMeans


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)


def perform(run, context: RunContext, stop_at: tuple[str, int, int] | None = None) -> None:
    """Execute a run, up to Ctrl-C at an event (kind, task, epoch)."""

    steps = []

    def report(step) -> None:
        event = event_of(step, first=not steps)
        steps.append(step)
        if (event.kind, event.task, event.epoch) == stop_at:
            raise KeyboardInterrupt

    try:
        execute(Continual(), run, context, report)
    except KeyboardInterrupt:
        assert stop_at is not None
    else:
        assert stop_at is None


def curves(run, out: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows: the points (step, value) of each curve."""
    events = EventAccumulator(str(RunFolder(out, run).path / "tensorboard"))
    events.Reload()
    return {
        name: [(point.step, point.value) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


@pytest.mark.parametrize("method", ["radial-vcl", "naive", "joint", "replay"])
def test_logging_changes_no_byte_of_the_results(tmp_path: Path, method):
    run = tiny_run(method, benchmark=SINGLE_HEAD, epochs=2)
    perform(run, RunContext(tmp_path / "without"))
    perform(run, RunContext(tmp_path / "with", log=loggers_of(["tensorboard"])))
    assert accuracy_bytes(run, tmp_path / "with") == accuracy_bytes(run, tmp_path / "without")
    names = [
        {path.name for path in RunFolder(tmp_path / kind, run).path.iterdir()}
        for kind in ("with", "without")
    ]
    assert names[0] - names[1] == {"tensorboard"}


def test_the_curves_are_the_scores_at_the_number_of_steps_made(tmp_path: Path):
    run = tiny_run("radial-vcl", epochs=2)
    perform(run, RunContext(tmp_path, log=loggers_of(["tensorboard"])))
    drawn = curves(run, tmp_path)
    tidy = pd.read_csv(RunFolder(tmp_path, run).path / "accuracy.csv")
    averages = []
    for metric in ("accuracy", "nll", "ece"):
        for task in range(1, 6):
            name = f"{metric}/task-{task}"
            cells = tidy[(tidy.metric == metric) & (tidy.task_evaluated == task)]
            assert [value for _, value in drawn[name]] == pytest.approx(list(cells.value))
            steps = [step for step, _ in drawn[name]]
            assert steps[0] == drawn["average_accuracy"][task - 1][0]
            assert steps == sorted(set(steps))
    seen = tidy[(tidy.metric == "accuracy") & (tidy.task_evaluated <= tidy.task_trained)]
    averages = list(seen.groupby("task_trained").value.mean())
    assert [value for _, value in drawn["average_accuracy"]] == pytest.approx(averages)
    in_training = drawn["training_nll/task-5"]
    assert len(in_training) == 2
    assert in_training[-1][0] == drawn["average_accuracy"][-1][0]


def test_what_comes_before_the_epochs_of_a_task_is_in_no_mean_of_theirs(monkeypatch):
    """The start by maximum likelihood has another objective."""
    counted = []
    take = EpochMeans.take
    monkeypatch.setattr(
        EpochMeans, "take", lambda self: (counted.append(self.points), take(self))[1]
    )
    run = tiny_run("vcl-ml-init", epochs=2, **{"options.ml_epochs": 3})
    training = ContinualRun(run.stream, run.recipe, run.seed, watched=True)
    next(training.finish_tasks())
    assert len(set(counted)) == 1


def test_a_run_that_goes_on_goes_on_in_the_same_log(tmp_path: Path):
    run = tiny_run("radial-vcl", epochs=2)
    whole = RunContext(tmp_path / "whole", log=loggers_of(["tensorboard"]))
    perform(run, whole)
    context = replace(whole, out=tmp_path / "stopped")
    perform(run, context, stop_at=("epoch", 1, 1))  # before there is a checkpoint
    perform(run, context, stop_at=("epoch", 3, 5))  # within a task: that epoch is logged twice
    perform(run, context)
    assert accuracy_bytes(run, context.out) == accuracy_bytes(run, whole.out)
    assert curves(run, context.out) == curves(run, whole.out)


@pytest.mark.slow
def test_wandb_stays_offline_keeps_its_id_and_changes_nothing(tmp_path: Path):
    run = tiny_run("radial-vcl", epochs=1)
    perform(run, RunContext(tmp_path / "without"))
    context = RunContext(tmp_path / "with", log=loggers_of(["wandb"]))
    perform(run, context, stop_at=("epoch", 2, 2))
    perform(run, context)
    assert accuracy_bytes(run, context.out) == accuracy_bytes(run, tmp_path / "without")
    folder = RunFolder(context.out, run).path / "wandb"
    identity = (folder / "run-id").read_text().strip()
    assert not list(folder.glob("run-2*"))  # what is not offline
    logs = sorted(folder.glob("offline-run-*/*.wandb"))
    assert len(logs) == 2
    assert {path.name for path in logs} == {f"run-{identity}.wandb"}
    content = b"".join(path.read_bytes() for path in logs)
    for words in (b"average_accuracy", b"accuracy/task-1", b"training_nll", MULTI_HEAD.encode()):
        assert words in content


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError) as caught:
        perform(tiny_run(), RunContext(tmp_path, log=loggers_of(["wandb"])))
    assert caught.value.key == "log"


def test_a_variable_that_wandb_refuses_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "bogus")
    with pytest.raises(UserError) as caught:
        perform(tiny_run(), RunContext(tmp_path, log=loggers_of(["wandb"])))
    assert caught.value.key == "log = 'wandb': $WANDB_MODE"


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path):
    run = tiny_run()
    folder = RunFolder(tmp_path, run).path
    folder.mkdir(parents=True)
    (folder / "tensorboard").write_text("in the way")
    with pytest.raises(UserError) as caught:
        perform(run, RunContext(tmp_path, log=loggers_of(["tensorboard"])))
    assert caught.value.key == str(folder / "tensorboard")


def test_an_unknown_logger_is_one_line():
    with fails("log", "wand", "wandb"):
        loggers_of(["wand"])


def test_the_command_line_has_no_loggers_for_lanes(tmp_path: Path, capsys):
    assert main(["run", MULTI_HEAD, "--log", "wandb", "--lanes", "2", "--out", str(tmp_path)]) == 1
    assert "lanes = 2 trains runs as one program, which logs nothing" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
