import csv
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks.speed import growth, kl, run
from benchmarks.speed.__main__ import main
from benchmarks.speed.measuring import TITLES, read


@pytest.fixture(autouse=True)
def _own_signals():
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "speed.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.processes
def test_growth_and_whole_runs_are_measured_in_processes_of_their_own(tiny, capsys):
    to = tiny.scratch / "speed"
    assert main(["growth", "run", "--quick", "--to", str(to)]) == 0
    out = capsys.readouterr().out
    rows = rows_of(to)
    assert [*dict.fromkeys(r["section"] for r in rows)] == ["growth", "run"]
    assert all(float(r["low"]) <= float(r["median"]) <= float(r["high"]) for r in rows)
    text = (to / "README.md").read_text()
    for name in ("growth", "run"):
        assert f"`python -m benchmarks.speed {name} --quick`" in text
        assert f"## {name}: {TITLES[name]}" in text
        assert f"\n{name}: {TITLES[name]}\n" in out
        assert f"]({name}.png)" in text
        assert all((to / f"{name}.{kind}").is_file() for kind in ("png", "svg"))
    for recipe in run.RECIPES:
        for method in run.METHODS:
            parts = {
                r["metric"]: float(r["median"])
                for r in rows
                if (r["variant"], r["size"]) == (method, recipe)
            }
            training, evaluation = parts["training (s)"], parts["evaluation (s)"]
            assert 0 < training + evaluation < parts["whole (s)"]
            share = parts["evaluation, per cent of training"]
            assert share == pytest.approx(100 * evaluation / training)


def test_only_the_sections_named_are_measured_and_join_those_of_before(tiny, capsys):
    to = tiny.scratch / "speed"
    assert main(["kl", "kl", "--quick", "--repeats", "3", "--to", str(to)]) == 0
    files = ["README.md", "kl.json", "kl.png", "kl.svg", "speed.csv"]
    assert sorted(p.name for p in to.iterdir()) == files
    assert {(r["section"], r["repeats"]) for r in rows_of(to)} == {("kl", "3")}
    assert "`python -m benchmarks.speed kl --repeats 3 --quick`" in (to / "README.md").read_text()
    assert main(["prediction", "--quick", "--to", str(to)]) == 0
    assert {r["section"] for r in rows_of(to)} == {"kl", "prediction"}
    text = (to / "README.md").read_text()
    assert text.index("## kl") < text.index("## prediction")


def test_a_page_is_made_again_from_what_was_measured(tiny, capsys):
    to = tiny.scratch / "speed"
    assert main(["kl", "--quick", "--to", str(to)]) == 0
    made = {name: (to / name).read_bytes() for name in ("README.md", "kl.png", "speed.csv")}
    for name in made:
        (to / name).unlink()
    assert main(["--page", "--to", str(to)]) == 0
    assert made == {name: (to / name).read_bytes() for name in made}
    assert main(["--page", "--to", str(tiny.scratch / "empty")]) == 1


@pytest.mark.parametrize(
    ("to", "page", "named"),
    [("file", "", "file"), (".", "mine", "README.md")],
)
def test_a_folder_that_cannot_be_made_or_has_another_page_is_refused_before_any_work(
    tiny, monkeypatch, capsys, to, page, named
):
    monkeypatch.setattr(kl, "measure", pytest.fail)
    (tiny.scratch / "file").write_text("")
    if page:
        (tiny.scratch / "README.md").write_text(page)
    assert main(["kl", "--quick", "--to", str(tiny.scratch / to)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line
    assert not page or (tiny.scratch / "README.md").read_text() == page


def test_a_data_folder_that_is_named_has_to_hold_the_data(tiny, tmp_path, capsys):
    to = ["--to", str(tmp_path / "speed")]
    assert main(["step", "--quick", "--data-dir", str(tmp_path), *to]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "train-images" in line


def test_an_unknown_section_is_one_line_that_names_the_known_ones(capsys):
    with pytest.raises(SystemExit) as end:
        main(["steps"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert ", ".join(TITLES) in line


def test_what_each_section_measures_is_listed(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{name:14}{title}" for name, title in TITLES.items()]


def test_ctrl_c_keeps_the_sections_that_were_done(tiny, monkeypatch, capsys):
    def interrupted(setting):
        raise KeyboardInterrupt

    monkeypatch.setattr(growth, "measure", interrupted)
    to = tiny.scratch / "speed"
    assert main(["kl", "growth", "--quick", "--to", str(to)]) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(read(to)) == ["kl"]
    assert "## kl" in (to / "README.md").read_text()


def test_a_run_that_fails_is_reported_with_its_message(tiny, monkeypatch, capsys):
    def fails(*args, **kwargs):
        return subprocess.CompletedProcess(args, 1, "", "vcl-radial: the disk is full\n")

    monkeypatch.setattr(subprocess, "run", fails)
    assert main(["run", "--quick", "--to", str(tiny.scratch / "speed")]) == 1
    assert "the disk is full" in capsys.readouterr().err


@pytest.mark.parametrize("recipe", run.RECIPES)
def test_a_whole_command_has_its_recipe_and_the_images_of_the_setting(tiny, monkeypatch, recipe):
    commands = []
    seconds = '{"seconds": {"training": 8.0, "evaluation": 2.0}}'

    def execute(command):
        commands.append(command)
        folder = Path(command[command.index("--out") + 1], "benchmark", "method", "seed-0")
        folder.mkdir(parents=True)
        (folder / "environment.json").write_text(seconds)

    monkeypatch.setattr(run, "execute", execute)
    parts = run.time_run("radial-vcl", run.RECIPES[recipe], tiny)
    assert parts["evaluation, per cent of training"] == 25
    (command,) = commands
    assert ("--tuned" in command) == (recipe == "tuned recipe")
    assert command[command.index("--data-dir") + 1] == str(tiny.images.folder)
