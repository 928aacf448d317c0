import csv
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.speed import growth, kl, lanes, memory, profile
from benchmarks.speed.__main__ import main
from benchmarks.speed.measuring import MEASURES, read
from vcl_radial.runs.runner import perform


@pytest.fixture(autouse=True)
def _own_signals():
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def probes_here(monkeypatch):
    """Memory is probed in this process: a fresh one takes seconds for its imports alone."""

    def measure_here(probes):
        return [memory.measure_probe(probe) for probe in probes]

    monkeypatch.setattr(memory, "in_fresh_processes", measure_here)


@pytest.fixture
def jobs_here(monkeypatch):
    """Runs are carried out in this process, for the same reason."""
    monkeypatch.setattr(
        lanes, "perform", lambda runs, place, jobs, lanes: perform(runs, place, 1, lanes)
    )


@pytest.fixture
def sampled_here(monkeypatch):
    """The sampler need not be installed."""
    stacks = Counter({("main (vcl_radial/cli)", "train (vcl_radial/runs)"): 3})
    monkeypatch.setattr(profile, "_sampler", lambda: "py-spy")
    monkeypatch.setattr(profile, "_sampled", lambda spy, setting: stacks)


@pytest.mark.processes
@pytest.mark.usefixtures("sampled_here")
def test_a_quick_look_at_everything_writes_table_page_and_figures(
    tiny, probes_here, jobs_here, capsys
):
    to = tiny.scratch / "speed"
    assert main(["--quick", "--to", str(to)]) == 0
    out = capsys.readouterr().out
    with (to / "speed.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [*dict.fromkeys(r["section"] for r in rows)] == list(MEASURES)
    assert all(float(r["low"]) <= float(r["median"]) <= float(r["high"]) for r in rows)
    text = (to / "README.md").read_text()
    assert f"`python -m benchmarks.speed {' '.join(MEASURES)} --quick`" in text
    assert "random 28x28 images of 10 classes" in text
    assert "random 28x28 images of 10 classes" in out
    for name, measures in MEASURES.items():
        assert f"## {name}: {measures}" in text
        assert f"\n{name}: {measures}\n" in out
    for picture in {*MEASURES, "lanes-jobs"} - {"command"}:
        assert f"]({picture}.png)" in text
        assert all((to / f"{picture}.{kind}").is_file() for kind in ("png", "svg"))

    of_runs = [r for r in rows if r["section"] == "run"]
    for method in ("naive", "radial-vcl"):
        parts = {r["metric"]: float(r["median"]) for r in of_runs if r["variant"] == method}
        seconds = {metric: value for metric, value in parts.items() if metric.endswith("(s)")}
        whole = seconds.pop("whole (s)")
        assert sum(seconds.values()) == pytest.approx(whole)
        assert all(0 < value < whole for value in seconds.values())


def test_only_the_sections_named_are_measured(tiny, capsys):
    to = tiny.scratch / "speed"
    assert main(["kl", "kl", "--quick", "--repeats", "3", "--to", str(to)]) == 0
    files = ["README.md", "kl.json", "kl.png", "kl.svg", "speed.csv"]
    assert sorted(p.name for p in to.iterdir()) == files
    with (to / "speed.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(r["section"], r["repeats"]) for r in rows} == {("kl", "3")}
    assert "`python -m benchmarks.speed kl --repeats 3 --quick`" in (to / "README.md").read_text()


def test_a_data_folder_that_is_named_has_to_hold_the_data(tiny, tmp_path: Path, capsys):
    assert main(["step", "--quick", "--data-dir", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "train-images" in line


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_measured(
    tiny, monkeypatch, capsys
):
    monkeypatch.setattr(kl, "measure", pytest.fail)
    (tiny.scratch / "file").write_text("")
    assert main(["kl", "--quick", "--to", str(tiny.scratch / "file")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "file: cannot be written" in line


def test_a_page_that_no_bench_wrote_stays(tiny, monkeypatch, capsys):
    monkeypatch.setattr(kl, "measure", pytest.fail)
    (tiny.scratch / "README.md").write_text("mine")
    assert main(["kl", "--quick", "--to", str(tiny.scratch)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "README.md: exists, and this command has not written it" in line
    assert (tiny.scratch / "README.md").read_text() == "mine"


def test_an_unknown_section_is_one_line_that_names_the_known_ones(capsys):
    with pytest.raises(SystemExit) as end:
        main(["steps"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"'steps' is none of {', '.join(MEASURES)}" in line


def test_what_each_section_measures_is_listed(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{name:14}{measures}" for name, measures in MEASURES.items()]


def test_a_section_joins_those_that_were_measured_before(tiny, capsys):
    to = tiny.scratch / "speed"
    for section in ("kl", "step"):
        assert main([section, "--quick", "--to", str(to)]) == 0
    text = (to / "README.md").read_text()
    assert text.index("`python -m benchmarks.speed kl --quick`") < text.index(
        "`python -m benchmarks.speed step"
    )
    assert all(f"![{name}" not in text and f"]({name}.png)" in text for name in ("step", "kl"))


def test_ctrl_c_keeps_the_sections_that_were_done(tiny, monkeypatch, capsys):
    def interrupted(setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(growth, "measure", interrupted)
    to = tiny.scratch / "speed"
    assert main(["kl", "growth", "--quick", "--to", str(to)]) == 130
    assert (
        capsys.readouterr().err
        == "python -m benchmarks.speed: stopped; sections that were done are kept\n"
    )
    assert list(read(to)) == ["kl"]
    assert "## kl" in (to / "README.md").read_text()


def test_a_run_that_fails_is_reported_in_its_own_words(tiny, monkeypatch, capsys):
    def fails(*args, **kwargs):
        return subprocess.CompletedProcess(args, 1, "", "vcl-radial: the disk is full\n")

    monkeypatch.setattr(subprocess, "run", fails)
    assert main(["run", "--quick", "--to", str(tiny.scratch / "speed")]) == 1
    assert "the disk is full" in capsys.readouterr().err
