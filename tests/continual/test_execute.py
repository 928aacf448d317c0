import gc
import io
import json
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from failing import refuses
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, accuracy_bytes, carried_out, tiny_run

from vcl_radial import __version__, native
from vcl_radial.errors import Diverged
from vcl_radial.metrics import summary
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute, execute_together
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.runner import perform
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.tables import scores
from vcl_radial.tracks.continual.track import Continual
from vcl_radial.tracks.continual.training import ContinualRun

TASKS = range(1, 6)


@pytest.fixture(scope="module")
def never_interrupted(tmp_path_factory: pytest.TempPathFactory):
    """A folder with a finished run of each configuration, made when first asked for."""
    out = tmp_path_factory.mktemp("whole")

    def folder(run: Run) -> RunFolder:
        if RunFolder(out, run).fault() is not None:
            carried_out(run, out)
        return RunFolder(out, run)

    return folder


def tidy(folder: RunFolder) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO((folder.path / "accuracy.csv").read_bytes()))


def test_a_run_ends_with_the_files_of_the_run_folder_and_nothing_else(never_interrupted):
    folder = never_interrupted(tiny_run("radial-vcl"))
    files = folder.run.result_files
    model = {"model.json", "model.safetensors"}
    assert {path.name for path in folder.path.iterdir()} == {*files, *model, "layers.csv", "done"}
    assert re.fullmatch(r"seed-0-[0-9a-f]{8}", folder.path.name)
    assert folder.path.parts[-3:-1] == (MULTI_HEAD, "radial-vcl")


SEEN = {(trained, task) for trained in TASKS for task in TASKS if task <= trained}
NEXT = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)}
"""Asked for where one head serves all tasks: what are the tasks before worth to the next one?"""
BEFORE = {(0, task) for task in TASKS}


@pytest.mark.parametrize(
    ("benchmark", "scored", "extra"),
    [(MULTI_HEAD, SEEN, set()), (SINGLE_HEAD, SEEN | NEXT | BEFORE, {"predicted_as_newest"})],
)
def test_a_sequential_method_is_scored_on_the_tasks_that_it_has_trained(
    never_interrupted, benchmark, scored, extra
):
    table = tidy(never_interrupted(tiny_run("radial-vcl", benchmark)))
    assert list(table.columns) == ["task_trained", "task_evaluated", "metric", "value"]
    cells = list(zip(table.task_trained, table.task_evaluated, table.metric, strict=True))
    always = {"accuracy", "nll", "ece", "sampling"}
    expected = {(*cell, metric) for cell in scored for metric in always}
    expected |= {(*cell, metric) for cell in scored - BEFORE for metric in extra}
    assert set(cells) == expected
    assert len(cells) == len(expected)
    assert table.value.notna().all()


def test_a_joint_run_is_scored_after_its_only_training(never_interrupted):
    table = tidy(never_interrupted(tiny_run("joint")))
    assert set(zip(table.task_trained, table.task_evaluated, strict=True)) == {
        (5, task) for task in TASKS
    }


@pytest.mark.parametrize("method", ["radial-vcl", "joint"])
def test_the_metrics_can_be_computed_again_from_the_tidy_scores(never_interrupted, method):
    folder = never_interrupted(tiny_run(method, SINGLE_HEAD))
    assert json.loads((folder.path / "metrics.json").read_text()) == summary(scores(tidy(folder)))


def test_the_metrics_of_a_head_for_each_task_lack_forward_transfer(never_interrupted):
    folder = never_interrupted(tiny_run("radial-vcl"))
    metrics = json.loads((folder.path / "metrics.json").read_text())
    assert metrics == summary(scores(tidy(folder)))
    assert metrics["forward_transfer"] is None


def test_the_spec_in_the_folder_is_the_run_and_has_its_digest(never_interrupted):
    run = tiny_run("radial-vcl")
    spec = tomllib.loads((never_interrupted(run).path / "spec.toml").read_text())
    assert Run.model_validate(spec) == run
    assert Run.model_validate(spec).digest() == never_interrupted(run).path.name[-8:]


def test_the_environment_says_where_the_numbers_came_from(never_interrupted):
    folder = never_interrupted(tiny_run("radial-vcl"))
    where = json.loads((folder.path / "environment.json").read_text())
    assert where["commit"] is None or re.match(r"[0-9a-f]{7}", where["commit"])
    assert where["packages"]["vcl-radial"] == __version__
    assert all(where["packages"].values())
    assert (where["device"], where["threads"]) == ("cpu", 1)
    assert where["tasks"] == ["0, 1", "2, 3", "4, 5", "6, 7", "8, 9"]
    assert set(where["seconds"]) == {"training", "evaluation"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", where["finished"])


def test_a_run_that_another_commit_went_on_with_names_both(tmp_path: Path, monkeypatch):
    run = tiny_run("naive")
    monkeypatch.setattr("vcl_radial.runs.folder.loaded", lambda: "0123456")
    carried_out(run, tmp_path, interrupt_at=("task", 2))
    monkeypatch.undo()
    monkeypatch.setattr("vcl_radial.runs.environment.loaded", lambda: "6543210")
    execute(Continual(), run, RunContext(tmp_path))
    where = json.loads((RunFolder(tmp_path, run).path / "environment.json").read_text())
    assert where["commit"] == "0123456, 6543210"
    assert where["compiled"] is (native.unavailable() is None)


@pytest.mark.parametrize("as_lanes", [False, True])
def test_a_run_that_goes_on_without_the_compiled_library_says_so(
    tmp_path: Path, monkeypatch, capsys, as_lanes
):
    run = tiny_run("radial-vcl")
    folder = RunFolder(tmp_path, run)
    monkeypatch.setattr(native, "unavailable", lambda: None)
    carried_out(run, tmp_path, interrupt_at=("task", 2))
    carried_out(run, tmp_path, interrupt_at=("task", 3))
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(native, "unavailable", lambda: "switched off")
    if as_lanes:
        execute_together(Continual(), [run], RunContext(tmp_path))
    else:
        execute(Continual(), run, RunContext(tmp_path))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(
        f"{folder.checkpoint}: was computed on cpu with the compiled library; now on cpu without "
    )
    where = json.loads((folder.path / "environment.json").read_text())
    assert (where["device"], where["compiled"]) == ("cpu", [False, True])


def test_a_run_that_goes_on_on_another_device_names_both(tmp_path: Path, monkeypatch, capsys):
    run = tiny_run("naive")
    folder = RunFolder(tmp_path, run)
    with monkeypatch.context() as patch:
        patch.setattr("vcl_radial.runs.environment.device_name", lambda device: "a GPU")
        carried_out(run, tmp_path, interrupt_at=("task", 2))
    carried_out(run, tmp_path)
    assert f"{folder.checkpoint}: was computed on a GPU with" in capsys.readouterr().out
    where = json.loads((folder.path / "environment.json").read_text())
    assert where["device"] == "a GPU, cpu"


@pytest.mark.parametrize(
    ("method", "benchmark", "moment", "left"),
    [
        ("radial-vcl", SINGLE_HEAD, ("epoch", 3), [3, 4, 5]),
        ("gaussian-vcl", MULTI_HEAD, ("epoch", 3), [3, 4, 5]),
        ("joint", MULTI_HEAD, ("epoch", 1), [1]),
        ("joint", MULTI_HEAD, ("task", 5), []),
    ],
)
def test_an_interrupted_run_trains_what_is_left_and_ends_with_the_same_bytes(
    tmp_path: Path, never_interrupted, method, benchmark, moment, left
):
    run = tiny_run(method, benchmark)
    carried_out(run, tmp_path, interrupt_at=moment)
    assert RunFolder(tmp_path, run).fault() == "not finished"
    assert [e.task for e in carried_out(run, tmp_path) if e.kind == "epoch"] == left
    whole = (never_interrupted(run).path / "accuracy.csv").read_bytes()
    assert accuracy_bytes(run, tmp_path) == whole


@pytest.mark.parametrize("method", ["naive", "joint"])
def test_the_epochs_told_add_up_to_the_total(tmp_path: Path, method):
    events = carried_out(tiny_run(method, epochs=2), tmp_path)
    total = {"naive": 10, "joint": 2}[method]
    assert {event.total for event in events} == {total}
    assert [e.epoch for e in events if e.kind == "epoch"] == list(range(1, total + 1))
    assert events[-1].epoch == total
    assert all(e.accuracy is not None for e in events if e.kind == "task")


def test_a_spec_that_does_not_fit_its_data_leaves_no_folder(tmp_path: Path):
    with refuses("tasks = 3"):
        carried_out(tiny_run(**{"stream.tasks": 3}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_diverged_run_keeps_the_checkpoint_of_its_last_good_task(tmp_path: Path, user_module):
    user_module(
        "soon_nan",
        "from vcl_radial.integrations.avalanche.methods import VCL\n"
        "class SoonNan(VCL):\n"
        "    def penalty(self):\n"
        "        late = self.experience.current_experience == 2\n"
        "        return super().penalty() * (float('nan') if late else 1)\n",
    )
    run = tiny_run("radial-vcl", strategy="soon_nan:SoonNan")
    with refuses("nan", "task 3", kind=Diverged):
        carried_out(run, tmp_path)
    state = RunFolder(tmp_path, run).load_checkpoint()
    assert state is not None
    assert state["trainer"]["done"] == 2


def test_a_checkpoint_that_no_longer_fits_the_code_is_named(tmp_path: Path):
    run = tiny_run()
    RunFolder(tmp_path, run).save_checkpoint({"strategy": {"model": {}}, "rows": []})
    with refuses("checkpoint.pt", "delete it"):
        carried_out(run, tmp_path)


def test_a_checkpoint_whose_tensors_a_loader_would_cast_is_refused(tmp_path: Path):
    run = tiny_run()
    carried_out(run, tmp_path, interrupt_at=("task", 2))
    folder = RunFolder(tmp_path, run)
    state = folder.load_checkpoint()
    assert state is not None
    carried = state["trainer"]["states"][-1]
    network = carried["network"]
    (name, *_) = (name for name in network if name.endswith("weight"))
    folder.save_checkpoint(state)
    carried_out(run, tmp_path, interrupt_at=("task", 3))  # as it was stored, it goes on
    cast = {**network, name: network[name].double()}
    states = [{**carried, "network": cast}]
    folder.save_checkpoint({**state, "trainer": {**state["trainer"], "states": states}})
    with refuses("checkpoint.pt", "float64", "delete it"):
        carried_out(run, tmp_path)


def test_what_fails_after_a_checkpoint_was_taken_over_names_it(tmp_path: Path):
    run = tiny_run("replay")
    carried_out(run, tmp_path, interrupt_at=("task", 2))
    folder = RunFolder(tmp_path, run)
    state = folder.load_checkpoint()
    assert state is not None
    (carried,) = state["trainer"]["states"]
    carried["levels"] = carried["levels"][:1]
    folder.save_checkpoint(state)
    (end,) = perform([run], RunContext(tmp_path), jobs=1)
    assert end.status == "failed"
    assert f"{folder.checkpoint}: delete it" in str(end.fault)
    folder.checkpoint.unlink()
    assert [end.status for end in perform([run], RunContext(tmp_path), jobs=1)] == ["finished"]


def runs_in_memory() -> int:
    return sum(type(thing) is ContinualRun for thing in gc.get_objects())


def test_ended_runs_do_not_pile_up_in_memory(tmp_path: Path):
    gc.disable()  # it would come by, but only after several runs
    try:
        before = runs_in_memory()
        for seed in range(3):
            carried_out(tiny_run(seed=seed), tmp_path)
        assert runs_in_memory() <= before + 1
    finally:
        gc.enable()
