import io
import json

import pandas as pd
import pytest
from failing import refuses
from tiny_runs import MULTI_HEAD, Event, carried_out, event_of, tiny_run

from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute, execute_together
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.runner import perform
from vcl_radial.tracks.continual.track import Continual


def seeds(n, method="radial-vcl", **settings):
    return [tiny_run(method, seed=seed, **settings) for seed in range(n)]


def scores(run, out):
    return pd.read_csv(io.BytesIO((RunFolder(out, run).path / "accuracy.csv").read_bytes()))


def environment(run, out):
    """Where the numbers came from, but for the times, and the commit that others may change."""
    where = json.loads((RunFolder(out, run).path / "environment.json").read_text())
    assert None not in (where["parameters"], where["command"])
    return {key: where[key] for key in where.keys() - {"commit", "seconds", "finished"}}


def assert_same_scores(run, out, other):
    """NLL is continuous in the weights, accuracy is not: it alone can be compared closely."""
    ours, theirs = scores(run, out), scores(run, other)
    pd.testing.assert_frame_equal(ours.iloc[:, :3], theirs.iloc[:, :3])
    nll = ours.metric == "nll"
    assert nll.any()
    assert (ours.value[nll] - theirs.value[nll]).abs().max() < 1e-3


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    for run in seeds(3):
        execute(Continual(), run, RunContext(out, command="the command"))
    return out


def test_runs_go_together_where_stream_and_shape_allow():
    radial, gaussian = seeds(5), seeds(2, "gaussian-vcl")
    joint, other = seeds(2, "joint"), seeds(1, epochs=3, hidden=[4])
    longer = seeds(1, epochs=3)
    work = Continual().batches([*radial, *joint, *gaussian, *other, *longer], 4)
    assert work == [radial[:4], [radial[4], *longer], [joint[0]], [joint[1]], gaussian, other]
    assert Continual().batches(radial, 1) == [[run] for run in radial]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.processes)])
def test_a_batch_ends_with_the_folders_that_its_runs_have_alone(alone, tmp_path, jobs):
    runs = seeds(3)
    outcomes = perform(runs, RunContext(tmp_path, command="the command"), jobs=jobs, lanes=2)
    assert [(o.run, o.fault) for o in sorted(outcomes, key=lambda o: o.run.seed)] == [
        (run, None) for run in runs
    ]
    for run in runs:
        folder = RunFolder(tmp_path, run)
        assert environment(run, tmp_path) == environment(run, alone)
        written = {path.name for path in folder.path.iterdir()}
        model = {"model.json", "model.safetensors"}
        assert written == {*run.result_files, *model, "layers.csv", "done"}
        assert folder.fault() is None
        assert_same_scores(run, tmp_path, alone)


def test_an_interrupted_batch_is_resumed_and_its_runs_may_part(alone, tmp_path):
    runs = seeds(3)

    def stop(run, step):
        if (run.seed, step.score is not None, step.done) == (1, True, 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute_together(Continual(), runs, RunContext(tmp_path), stop)
    assert RunFolder(tmp_path, runs[0]).load_checkpoint()["trainer"]["done"] == 3
    carried_out(runs[0], tmp_path)
    perform(runs[1:], RunContext(tmp_path), jobs=1, lanes=2)
    for run in runs:
        assert_same_scores(run, tmp_path, alone)


def test_a_run_with_a_damaged_checkpoint_starts_anew_beside_the_others(alone, tmp_path, capsys):
    runs = seeds(3)
    damaged = RunFolder(tmp_path, runs[1])
    damaged.start()
    damaged.checkpoint.write_bytes(b"0" * 100)
    outcomes = perform(runs, RunContext(tmp_path), jobs=1, lanes=3)
    assert [outcome.fault for outcome in outcomes] == [None] * 3
    assert f"{damaged.checkpoint}: damaged" in capsys.readouterr().out
    for run in runs:
        assert_same_scores(run, tmp_path, alone)


def test_a_foreign_checkpoint_stops_its_own_run_only(alone, tmp_path):
    runs = seeds(3)
    foreign = RunFolder(tmp_path / "other", runs[0])
    foreign.save_checkpoint({})
    refused = RunFolder(tmp_path, runs[1])
    refused.start()
    foreign.checkpoint.rename(refused.checkpoint)
    outcomes = {o.run.seed: o.fault for o in perform(runs, RunContext(tmp_path), jobs=1, lanes=3)}
    assert outcomes[0] is outcomes[2] is None
    assert "delete it" in outcomes[1]
    assert_same_scores(runs[2], tmp_path, alone)


def test_what_an_attempt_ended_with_is_kept_in_the_folders_of_the_runs_it_concerns(tmp_path):
    runs = [tiny_run("radial-vcl"), tiny_run("radial-vcl", learning_rate=1e30)]
    good, wild = (RunFolder(tmp_path, run).path / "failed.txt" for run in runs)
    good.parent.mkdir(parents=True)
    good.write_text("an earlier attempt's\n")
    faults = [outcome.fault for outcome in perform(runs, RunContext(tmp_path), jobs=1, lanes=2)]
    assert faults[0] is None
    assert "the loss became" in faults[1] or "not numbers" in faults[1]
    assert RunFolder(tmp_path, runs[1]).fault() == "not finished"
    assert not good.exists()
    assert wild.read_text() == f"{faults[1]}\n"


def test_a_fault_that_concerns_all_is_one_line_before_any_run_trains(tmp_path):
    runs = seeds(2, batch_size=100_000)
    with refuses("batch_size"):
        execute_together(Continual(), runs, RunContext(tmp_path))
    assert not (tmp_path / MULTI_HEAD).exists()
    with refuses("radial-vcl: batch_size"):
        perform(runs, RunContext(tmp_path), jobs=1, lanes=2)


def test_events_count_as_those_of_a_run_alone(tmp_path):
    (run,) = seeds(1, epochs=2)
    single = carried_out(run, tmp_path / "single")
    of_lane: list[Event] = []
    other = tiny_run("radial-vcl", seed=1, epochs=2)

    def report(of_run, step):
        if of_run == run:
            of_lane.append(event_of(step, first=not of_lane))

    execute_together(Continual(), [other, run], RunContext(tmp_path / "lanes"), report)
    strip = [(e.kind, e.task, e.epoch, e.total) for e in single]
    assert [(e.kind, e.task, e.epoch, e.total) for e in of_lane] == strip
