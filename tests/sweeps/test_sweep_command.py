import argparse
from pathlib import Path

import pytest
import tomli_w
from tiny_sweeps import table_of, trials_bytes

from vcl_radial.cli import report, sweep
from vcl_radial.cli.arguments import DONE, FAILED
from vcl_radial.errors import UserError


def call(command: str, *words: object) -> int:
    parser = argparse.ArgumentParser()
    {"sweep": sweep, "report": report}[command].add(parser)
    options = parser.parse_args(list(map(str, words)))
    code: int = options.command(options)
    return code


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(tomli_w.dumps(table_of(trials=2)))
    return path


def test_a_sweep_says_what_is_best_and_where_it_lies(file, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert call("sweep", file, "--jobs", 1, "--device", "cpu", "--out", out, "--trials", 1) == DONE
    printed = capsys.readouterr().out
    assert "1 finished" in printed
    assert "best: trial 0" in printed
    assert f"vcl-radial report {out / 'mine'}" in printed
    assert trials_bytes(out, "mine").count(b"\n") == 2
    environment = next(out.glob("mine/runs/**/environment.json")).read_text()
    assert f"vcl-radial sweep {file} --trials 1" in environment
    assert call("report", out / "mine", "--to", tmp_path / "report") == DONE
    best = tmp_path / "report/split-digits-multi-head/best-naive.toml"
    assert best.exists()
    assert f"vcl-radial run split-digits-multi-head --method {best}" in capsys.readouterr().out


def test_a_sweep_in_which_nothing_finished_has_failed(tmp_path: Path) -> None:
    path = tmp_path / "wild.toml"
    table = table_of(trials=1, fixed__optimizer="sgd", search={"learning_rate": [1e30]})
    path.write_text(tomli_w.dumps(table))
    assert call("sweep", path, "--jobs", 1, "--device", "cpu", "--out", tmp_path) == FAILED


def test_a_count_of_trials_is_asked_of_a_sweeps_folder_alone() -> None:
    with pytest.raises(UserError, match="--top: "):
        call("report", "nowhere", "--top", 2)


@pytest.mark.parametrize("words", [["--first", "naive"], ["--evidence"]])
def test_what_is_asked_of_runs_alone_is_refused_of_a_sweeps_folder(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sweep.toml").touch()
    with pytest.raises(UserError, match=f"{words[0]}: "):
        call("report", tmp_path, *words)


@pytest.mark.parametrize(
    "words", [["--jobs", "0"], ["--trials", "x"], ["--gpus-per-trial", "-1"], ["--executor", "x"]]
)
def test_an_impossible_argument_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        call("sweep", "d2-grid", *words)
    assert end.value.code == 2
