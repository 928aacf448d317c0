"""What every track has from the run machine, in the same words: one suite for all of them."""

import errno
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_data import small_mushrooms

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.errors import Diverged, UserError
from vcl_radial.files import atomic
from vcl_radial.integrations.loggers import tensorboard
from vcl_radial.reporting.gather import gather
from vcl_radial.runs import planning, tracks
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.lock import held
from vcl_radial.runs.runner import perform

TOY = Path(__file__).with_name("toy_track.py")


@dataclass(frozen=True)
class Tiny:
    """The smallest command of a track.

    Attributes:
        benchmark: a name or a path.
        method: that it runs; others go without saying.
        settings: that make it short.
        wild: a setting with which it diverges; None where nothing does it for sure.
        search: a key with two values, for a sweep.
    """

    benchmark: str
    method: str
    settings: dict
    search: tuple[str, str]
    data_dir: str | None = None
    options: list[str] = field(default_factory=list)

    def runs(self, seeds=2, **settings):
        return planning.plan(
            self.benchmark, [self.method], range(seeds), {**self.settings, **settings}
        )

    def context(self, out: Path) -> RunContext:
        return RunContext(out, None if self.data_dir is None else Path(self.data_dir))

    def command(self, out: Path, *more: str) -> list[str]:
        sets = [f"{key}={value!r}".replace("'", '"') for key, value in self.settings.items()]
        data = [] if self.data_dir is None else ["--data-dir", self.data_dir]
        base = ["run", self.benchmark, "--method", self.method, "--out", str(out), "--jobs", "1"]
        return [*base, *data, "--device", "cpu", "--set", *sets, *more]


TINY = {
    "continual": Tiny(
        "split-digits-multi-head",
        "radial-vcl",
        {"epochs": 1, "hidden": [8], "eval_samples": 2, "stream.tasks": 2},
        ("learning_rate", "[1e-3, 1e-2]"),
    ),
    "retinopathy": Tiny(
        "retinopathy-synthetic",
        "naive",
        {
            "epochs": 2,
            "channels": 1,
            "batch_size": 8,
            "eval_samples": 2,
            "data.size": 8,
            "data.patients": 40,
            "data.validation": 0.2,
        },
        ("learning_rate", "[1e-3, 1e-2]"),
    ),
    "regression": Tiny(
        "diabetes",
        "gaussian-vcl",
        {"steps": 20, "eval_samples": 4},
        ("learning_rate", "[1e-3, 1e-2]"),
    ),
    "bandits": Tiny(
        "bandit-mushroom",
        "naive",
        {"data.rounds": 60, "data.validation": 0.5, "steps": 2},
        ("learning_rate", "[0.1, 0.01]"),
        data_dir="data",
    ),
    "toy_track:Toy": Tiny("toy.toml", "guess.toml", {"epochs": 3}, ("learning_rate", "[0.5, 0.1]")),
}


def test_every_shipped_track_is_under_this_suite():
    assert set(TINY) - {"toy_track:Toy"} == set(tracks.names())


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """What data are prepared once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=TINY)
def tiny(request, cache, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(TOY.parent))
    monkeypatch.delenv("VCL_RADIAL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    Path("toy.toml").write_text('description = "a mean"\ntrack = "toy_track:Toy"\n')
    Path("guess.toml").write_text('description = "step by step"\nepochs = 3\n')
    small_mushrooms(tmp_path / "data" / "bandits")
    return TINY[request.param]


@pytest.fixture
def done(tiny, cache, tmp_path):
    """A folder with the finished runs of two seeds, which are carried out once for each track."""
    kept = cache / "runs" / Path(tiny.benchmark).stem
    if not kept.exists():
        perform(tiny.runs(), tiny.context(kept), 1, lanes=1)
    return shutil.copytree(kept, tmp_path / "done")


def results(run, out: Path) -> dict[str, object]:
    """The result files of a finished run, but for when and where."""
    folder = RunFolder(out, run)
    assert folder.fault() is None
    tables = {}
    for path in sorted(folder.path.glob("*.csv")):
        table = pd.read_csv(path)
        # Workers make all resamples of patients, and this process only two.
        changing = ["seconds", "standard_error", "lower", "upper"]
        tables[path.name] = table.drop(columns=changing, errors="ignore").to_csv()
    return tables


@pytest.mark.usefixtures("no_report")
def test_python_makes_the_files_of_the_command_and_reads_those_that_it_wrote(tiny, tmp_path):
    common = {"settings": tiny.settings, "data_dir": tiny.data_dir}
    made = vr.run(tiny.benchmark, tiny.method, out="python", jobs=1, device="cpu", **common)
    assert main(tiny.command(Path("command"))) == 0
    (spec,) = (path.relative_to("command") for path in Path("command").rglob("spec.toml"))
    assert Path("python", spec).read_bytes() == Path("command", spec).read_bytes()
    (run,) = tiny.runs(seeds=1)
    run = run.on_data(tiny.context(tmp_path).data_dir)
    assert results(run, Path("python")) == results(run, Path("command"))
    pd.testing.assert_frame_equal(vr.load_results("command").table, made.table)
    assert made.failures.empty
    if tiny.benchmark != "toy.toml":  # its scores have no metric
        assert set(made.table.columns) >= {"method", "seed", "metric", "value"}
        assert len(made.summary()) >= 1
        assert np.isfinite(made.table["value"]).any()
    assert made.to_latex().startswith("\\begin{tabular}")


class Stopped(BaseException):
    pass


def test_a_run_stopped_at_any_report_ends_with_the_same_bytes(tiny, tmp_path):
    (run,) = tiny.runs(seeds=1)
    track, whole, parts = tracks.find(run.TRACK), tmp_path / "whole", tmp_path / "parts"
    reports = []
    execute(track, run, tiny.context(whole), reports.append)
    for moment in range(1, len(reports) + 1, max(1, len(reports) // 3)):
        calls = iter(range(moment))

        def stop(step, calls=calls):
            if next(calls, None) is None:
                raise Stopped

        try:
            execute(track, run, tiny.context(parts / str(moment)), stop)
        except Stopped:
            assert RunFolder(parts / str(moment), run).fault() == "not finished"
        execute(track, run, tiny.context(parts / str(moment)))
        assert results(run, parts / str(moment)) == results(run, whole)
        assert not RunFolder(parts / str(moment), run).checkpoint.exists()


@pytest.mark.parametrize("tiny", sorted({*TINY} - {"toy_track:Toy"}), indirect=True)
def test_a_posterior_without_its_kl_is_refused_before_any_run(tiny, tmp_path):
    settings = {**tiny.settings, "strategy": "naive", "posterior": "radial"}
    runs = planning.plan(tiny.benchmark, ["naive"], [0], settings)
    with pytest.raises(UserError, match="naive: Naive trains a network with a posterior, and its"):
        perform(runs, tiny.context(tmp_path / "out"), jobs=1)
    assert not list(tmp_path.glob("out/*/*/seed-*"))


def test_finished_runs_are_kept_and_one_that_was_altered_is_done_again(tiny, done, capsys):
    first, second = tiny.runs()
    whole = results(first, done)
    assert results(second, done) != whole
    table = next(RunFolder(done, first).path.glob("*.csv"))
    table.write_text(table.read_text() + "\n")
    assert [end.run for end in perform([first, second], tiny.context(done), 1)] == [first]
    printed = capsys.readouterr().out
    assert "1 run to do, 1 at a time, 1 kept from before" in printed
    assert f"{table} was altered after the run: this run is repeated" in printed
    assert results(first, done) == whole
    leftover = RunFolder(done, first).checkpoint
    leftover.touch()  # of a kill after the marker was written
    assert perform([first, second], tiny.context(done), 1) == []
    assert not leftover.exists()
    assert "all 2 runs were finished before" in capsys.readouterr().out


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_run_that_another_command_is_at_work_on_is_left_to_it(tiny, tmp_path, capsys, lanes):
    busy, free = tiny.runs()
    if lanes > 1 and not tracks.find(busy.TRACK).has_lanes:
        pytest.skip("its runs train one by one")
    with held(RunFolder(tmp_path, busy).path):
        one, other = perform([busy, free], tiny.context(tmp_path), 1, lanes=lanes)
    assert (one.status, other.status) == ("elsewhere", "finished")
    assert one.fault.startswith("another command is running this run")
    assert "left to another command" in capsys.readouterr().out


def test_a_diverged_run_is_recorded_and_the_others_go_on(tiny, tmp_path, monkeypatch):
    wild, tame = tiny.runs()
    track = tracks.find(wild.TRACK)
    opened = type(track).open

    def open_one(self, run, context, report):
        training = opened(self, run, context, report)
        if run == wild:

            def steps():
                raise Diverged("the loss is nan: lower learning_rate")

            training.steps = steps
        return training

    with monkeypatch.context() as patch:
        patch.setattr(type(track), "open", open_one)
        one, other = perform([wild, tame], tiny.context(tmp_path), 1, lanes=1)
    assert (one.status, other.status) == ("diverged", "finished")
    left = RunFolder(tmp_path, wild).path / "failed.txt"
    assert left.read_text() == "the loss is nan: lower learning_rate\n"
    (end,) = perform([wild, tame], tiny.context(tmp_path), 1, lanes=1)
    assert end.status == "finished"
    assert not left.exists()


def test_a_full_disk_is_one_line_and_nothing_is_lost(tiny, done, monkeypatch):
    first, second = tiny.runs()
    shutil.rmtree(RunFolder(done, second).path)

    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write", full)
        (end,) = perform([first, second], tiny.context(done), 1)
    assert end.status == "blocked"
    assert "cannot be written: No space left on device; free space or choose" in end.fault
    assert len(end.fault.splitlines()) == 1
    (end,) = perform([first, second], tiny.context(done), 1)
    assert (end.run, end.status) == (second, "finished")


def test_a_damaged_checkpoint_is_named_and_its_run_starts_anew(tiny, tmp_path, capsys):
    (run,) = tiny.runs(seeds=1)
    folder = RunFolder(tmp_path, run)
    folder.save_checkpoint({})
    folder.checkpoint.write_bytes(folder.checkpoint.read_bytes()[:-1])
    assert [end.status for end in perform([run], tiny.context(tmp_path), 1)] == ["finished"]
    assert f"{folder.checkpoint}: damaged" in capsys.readouterr().out


def test_a_checkpoint_of_another_run_is_refused_and_the_others_go_on(tiny, tmp_path):
    refused, other = tiny.runs()
    foreign = RunFolder(tmp_path / "elsewhere", other)
    foreign.save_checkpoint({})
    folder = RunFolder(tmp_path, refused)
    folder.start()
    foreign.checkpoint.rename(folder.checkpoint)
    one, two = perform([refused, other], tiny.context(tmp_path), 1, lanes=1)
    assert (one.status, two.status) == ("failed", "finished")
    assert one.fault == (
        f"{folder.checkpoint}: belongs to another spec; delete it to run this seed from its start"
    )
    assert (folder.path / "failed.txt").read_text() == f"{one.fault}\n"


@pytest.mark.processes
def test_the_run_of_a_killed_worker_is_done_once_more_to_the_same_numbers(
    tiny, done, tmp_path, monkeypatch, capsys
):
    from vcl_radial.runs import processes

    runs, killed = tiny.runs(), []
    receive = processes.WorkerProcess.receive
    on_interrupt = signal.getsignal(signal.SIGINT)

    def hear_and_kill(self):
        message = receive(self)
        if not killed and self.alive:
            killed.append(self._process.pid)
            os.kill(self._process.pid, signal.SIGKILL)
        return message

    with monkeypatch.context() as patch:
        patch.setattr(processes.WorkerProcess, "receive", hear_and_kill)
        patch.setattr("vcl_radial.runs.runner._check_in_worker", lambda *_: None)
        ends = perform(runs, tiny.context(tmp_path / "killed"), 2, lanes=1)
    assert killed
    assert signal.getsignal(signal.SIGINT) is on_interrupt
    assert {end.status for end in ends} == {"finished"}
    assert "its process died (SIGKILL" in capsys.readouterr().out
    for run in runs:
        assert results(run, tmp_path / "killed") == results(run, done)


@pytest.mark.slow
def test_curves_are_logged_and_change_no_number(tiny, done, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (run,) = tiny.runs(seeds=1)
    track = tracks.find(run.TRACK)
    context = RunContext(
        tmp_path / "with", tiny.context(tmp_path).data_dir, log={"tensorboard": tensorboard}
    )
    execute(track, run, context)
    assert results(run, tmp_path / "with") == results(run, done)
    events = EventAccumulator(str(RunFolder(context.out, run).path / "tensorboard"))
    events.Reload()
    assert events.Tags()["scalars"]


def test_the_command_runs_reports_and_keeps(tiny, tmp_path, capsys):
    out = tmp_path / "runs"
    assert main(tiny.command(out)) == 0
    (finished,), passed_over = gather(out)
    assert passed_over == []
    assert main(["report", str(out)]) == 0
    page = (out / "report" / "index.html").read_text()
    assert finished.method in page
    capsys.readouterr()
    assert main(tiny.command(out)) == 0
    assert "all 1 runs were finished before" in capsys.readouterr().out


@pytest.mark.slow
def test_a_sweep_tries_settings_on_validation_data(tiny, tmp_path, capsys):
    key, values = tiny.search
    fixed = [f"{k} = {v!r}".replace("'", '"') for k, v in tiny.settings.items()]
    fixed = [f'"{line.split(" = ")[0]}" = {line.split(" = ")[1]}' for line in fixed]
    Path("tiny.toml").write_text(
        "\n".join(
            [
                'kind = "grid"',
                f'benchmark = "{tiny.benchmark}"',
                f'method = "{tiny.method}"',
                "[fixed]",
                *fixed,
                "[search]",
                f"{key} = {values}",
            ]
        )
    )
    data = [] if tiny.data_dir is None else ["--data-dir", tiny.data_dir]
    command = ["sweep", "tiny.toml", "--jobs", "1", "--device", "cpu", *data]
    assert main(command) == 0
    (trials,) = tmp_path.rglob("trials.csv")
    table = pd.read_csv(trials)
    assert len(table) == 2
    assert (table["outcome"] == "finished").all()
    specs = [path.read_text() for path in tmp_path.rglob("spec.toml")]
    assert all('evaluate_on = "validation"' in spec for spec in specs)
    before = trials.read_bytes()
    assert main(command) == 0
    assert trials.read_bytes() == before


MISTAKES = [
    (["--set", "lerning_rate=1"], "unknown key 'lerning_rate'; the nearest known one is"),
    (["--set", "learning_rate=-1"], "learning_rate = -1: input should be"),
    (["--set", "evaluate_on=train"], "evaluate_on = 'train': input should be"),
    (["--method", "nobody"], "'nobody'"),
    (["--device", "cuda"], "device = 'cuda' "),
]


@pytest.mark.parametrize(("more", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_one_line_with_its_fix(tiny, tmp_path, capsys, more, message):
    if "cuda" in more:
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a CUDA device")
    assert main([*tiny.command(tmp_path / "runs"), *more]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "runs").exists()
