import io
import json
import math
import re
import sys

import pytest
from rich.console import Console
from tiny_runs import tiny_run

from vcl_radial.runs import progress
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.progress import Progress
from vcl_radial.runs.runner import perform
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.track import Continual

RUNS = [tiny_run(method, seed=seed) for method in ("naive", "joint") for seed in (0, 1)]


@pytest.fixture
def screen(monkeypatch) -> io.StringIO:
    """A terminal of 80 columns."""
    file = io.StringIO()

    def terminal(**settings):
        own = {"file": file, "force_terminal": True, "width": 80, "_environ": {}}
        return Console(**settings | own, legacy_windows=False)

    monkeypatch.setattr(progress, "Console", terminal)
    return file


def step(done: int, epoch: int, epochs: int, news: str | None = None) -> Step:
    return Step(done, f"task {min(done + 1, 5)} of 5", epoch=epoch, epochs=epochs, news=news)


def epochs_of(runs) -> list[int]:
    return [Continual().epochs(run) for run in runs]


def go_through(runs, shown: Progress) -> None:
    """Two runs at a time, as workers tell of them; joint runs train once."""
    for pair in (runs[:2], runs[2:]):
        trainings = 1 if pair[0].method == "joint" else 5
        for run in pair:
            shown.show(run, step(0, 0, trainings))
        for task in range(1, trainings + 1):
            for run in pair:
                shown.show(run, step(task - 1, task, trainings))
                done = 5 if trainings == 1 else task
                shown.show(run, step(done, task, trainings, f"task {done} of 5 is done"))
        for run in pair:
            shown.end(run, "finished")


def test_what_a_posterior_starts_with_is_shown_once_for_each_method(tmp_path, capsys):
    runs = [tiny_run(method, seed=seed) for method in ("radial-vcl", "naive") for seed in (0, 1)]
    perform(runs, RunContext(tmp_path), jobs=1, lanes=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "sigma" in line] == [
        "radial-vcl  body.0: sigma = 0.00248, D = 520, noise of a weight = 0.000109",
        "radial-vcl  head: sigma = 0.00248, D = 18, noise of a weight = 0.000584",
    ]
    facts = json.loads((RunFolder(tmp_path, runs[1]).path / "environment.json").read_text())
    assert [(row["layer"], row["group_size"]) for row in facts["starts"]] == [
        ("body.0", 520),
        ("head", 18),
    ]
    assert facts["starts"][0]["noise"] == pytest.approx(math.log1p(math.exp(-6)) / 520**0.5)


def test_without_a_terminal_each_task_and_each_end_is_a_plain_line(capsys):
    with Progress(RUNS, epochs_of(RUNS), how="2 at a time", kept=3) as shown:
        go_through(RUNS, shown)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "split-digits-multi-head: 4 runs to do, 2 at a time, 3 kept from before"
    assert lines[1] == "naive seed 0  task 1 of 5 is done  0:00"
    assert lines[-1] == "joint seed 1  done in 0:00  [4 of 4]"
    assert len(lines) == 1 + 2 * 5 + 2 + 4
    assert "\x1b" not in out
    assert err == ""


def test_on_a_terminal_the_bars_reach_their_totals(screen: io.StringIO):
    with Progress(RUNS, epochs_of(RUNS), how="2 at a time") as shown:
        go_through(RUNS, shown)
    last_screen = screen.getvalue().rpartition("joint seed 1  done in")[2]
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last_screen)
    # 2 naive runs of 5 trainings and 2 joint runs of one, an epoch each.
    assert re.search(r"all runs .*12/12 epochs 0:00:00 left", plain)


def test_bars_fit_into_80_columns(screen: io.StringIO):
    run = tiny_run("radial-vcl-eq44", epochs=100, seed=99)
    with Progress([run], epochs_of([run]), how="1 at a time") as shown:
        shown.show(run, step(2, 200, 500, "goes on after task 2 of 5"))
        shown.show(run, step(2, 233, 500))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert re.search(r"radial-vcl-eq44 seed 99  task 3 of 5 \S+ 233/500 epochs \S+ left", plain)
    assert "goes on after task 2 of 5" in plain
    assert max(map(len, re.split(r"[\r\n]+", plain))) < 80


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_fails_before_it_starts_ends_all_the_same(terminal, request, capsys):
    file = request.getfixturevalue("screen") if terminal else None
    with Progress(RUNS[:1], epochs_of(RUNS[:1]), how="1 at a time") as shown:
        shown.end(RUNS[0], "failed")
    text = file.getvalue() if file else capsys.readouterr().out
    assert "naive seed 0  FAILED  [1 of 1]" in text


def test_a_failed_run_counts_as_no_more_work_to_come(screen: io.StringIO):
    with Progress(RUNS[:2], epochs_of(RUNS[:2]), how="1 at a time") as shown:
        for run in RUNS[:2]:
            shown.show(run, step(0, 0, 5))
        shown.show(RUNS[0], step(0, 1, 5))
        shown.end(RUNS[0], "failed")
        shown.show(RUNS[1], step(4, 5, 5))
        shown.end(RUNS[1], "finished")
    assert re.search(r"10/10\S* epochs", screen.getvalue().rpartition("done in")[2])


def test_names_move_no_cursor_and_are_no_markup_on_a_terminal(screen, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    odd = ("[/b]", "\x1b[2J", "\u202e")
    runs = [tiny_run().model_copy(update={"method": f"m{name}"}) for name in odd]
    before = sys.stdout, sys.stderr
    with Progress(runs, [1] * len(runs), "at once") as shown:
        for run in runs:
            shown.show(run, step(0, 0, 1))
            shown.end(run, "finished")
        print("a name \x1b[2J that is printed meanwhile \u202e")
    assert (sys.stdout, sys.stderr) == before
    text = screen.getvalue()
    assert "m[/b] seed 0" in text
    assert r"m\x1b[2J seed 0" in text
    assert r"a name \x1b[2J that is printed" in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
