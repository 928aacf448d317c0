import importlib

import pytest
import toy_track

from vcl_radial.runs import processes
from vcl_radial.runs.attempt import Job
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.executor import LocalExecutor, carry_out

TOY = """
import os
import toy_track

class Deadly(toy_track.Toy):
    "The process of seed 9 dies; the others print."

    def open(self, run, context, report):
        if run.seed == 9:
            os._exit(3)
        print(run.method)
        return super().open(run, context, report)
"""


def runs(*seeds, method="m"):
    recipe = toy_track.Recipe(epochs=2)
    return [toy_track.Run(benchmark="b", method=method, seed=seed, recipe=recipe) for seed in seeds]


def ends(chosen, out, workers, track=None, reports=None):
    def on_step(run, step):
        if reports is not None:
            reports.append((run.seed, step.done))

    executor = LocalExecutor(workers)
    executor.start(track or toy_track.Toy(), RunContext(out), on_step)
    return {end.run.seed: end for end in carry_out(executor, [Job((run,)) for run in chosen])}


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_every_job_is_done_once_and_reported_on(tmp_path, workers):
    reports = []
    ended = ends(runs(3, 4, 5), tmp_path, workers, reports=reports)
    assert {seed: end.status for seed, end in ended.items()} == dict.fromkeys((3, 4, 5), "finished")
    assert sorted(reports) == [(seed, done) for seed in (3, 4, 5) for done in (0, 1, 2)]


@pytest.mark.processes
def test_a_job_whose_workers_die_twice_is_lost_alone(tmp_path, user_module, capsys):
    user_module("deadly", TOY)
    deadly = importlib.import_module("deadly").Deadly()
    ended = ends(runs(9, 1, 2, 3), tmp_path, 2, deadly)
    assert {seed: end.status for seed, end in ended.items()} == {
        9: "lost",
        **dict.fromkeys((1, 2, 3), "finished"),
    }
    assert "exit code 3" in ended[9].fault
    assert "its job is retried" in capsys.readouterr().out


@pytest.mark.processes
def test_a_worker_prints_what_its_output_has_no_code_for(tmp_path, user_module, monkeypatch, capfd):
    # The encoding is that of the start of a process, and an older server has its own.
    monkeypatch.setattr(processes._server, "running", False)
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    user_module("deadly", TOY)
    deadly = importlib.import_module("deadly").Deadly()
    chosen = [*runs(0, method="→"), *runs(1, method="x")]
    assert {end.status for end in ends(chosen, tmp_path, 2, deadly).values()} == {"finished"}
    assert r"\u2192" in capfd.readouterr().out
