import csv
import gzip
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vcl_radial.cli as command_line
from vcl_radial.cli import bandit
from vcl_radial.data.streams import DATA_VARIABLE
from vcl_radial.errors import UserError
from vcl_radial.runs.result_file import write
from vcl_radial.tracks.bandits import runner
from vcl_radial.tracks.bandits.published import PUBLISHED
from vcl_radial.tracks.bandits.report import make_claims, make_table, mean_and_deviation
from vcl_radial.tracks.bandits.runner import BanditUnit, play_unit

ROOT = Path(__file__).parents[2]


@pytest.fixture
def call(monkeypatch, tmp_path, data_dir, capsys):
    """The command line with this command; gives exit code, output and error."""
    if bandit not in command_line.COMMANDS:
        monkeypatch.setattr(command_line, "COMMANDS", (*command_line.COMMANDS, bandit))

    def call(*words):
        try:
            code = command_line.main(
                ["bandit", *words, "--data-dir", str(data_dir), "--out", str(tmp_path / "out")]
            )
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


FEW = ["--runs", "2", "--rounds", "41", "--method", "badam", "greedy", "uniform", "--jobs", "1"]


def test_finished_games_are_kept_and_a_lost_one_comes_back_the_same(call, tmp_path):
    code, out, _ = call("mushroom", "statlog", *FEW)
    assert code == 0
    assert "bandits: 12 games to play\n" in out
    report = tmp_path / "out" / "report"
    before = {name: (report / name).read_bytes() for name in ("bandits.csv", "regret.csv")}
    next((tmp_path / "out").rglob("statlog/badam/seed-1-*.json")).write_text("{")
    code, out, _ = call("mushroom", "statlog", *FEW)
    assert "bandits: 1 games to play, 11 kept from before\n" in out
    assert "statlog  badam  seed 1  " in out
    assert {name: (report / name).read_bytes() for name in before} == before

    page = (report / "README.md").read_text()
    assert "| mushroom | BAdam | 0.74 ± 0.09 |" in page
    assert "cut to 41 by --rounds" in page
    assert "`vcl-radial bandit mushroom statlog --method badam greedy uniform --runs 2 " in page
    assert (report / "regret.png").stat().st_size > 1000
    with (report / "bandits.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    for row in rows:
        regret, optimum = float(row["regret"]), float(row["optimum"])
        assert float(row["relative"]) == pytest.approx(1 - regret / optimum)


@pytest.mark.usefixtures("no_pictures")
def test_games_on_other_rows_are_not_taken_for_those_that_were_played(call, tmp_path, data_dir):
    assert call("mushroom", *FEW)[0] == 0
    report = tmp_path / "out" / "report" / "bandits.csv"
    before = report.read_bytes()
    path = data_dir / "bandits" / "mushroom.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"p,f", b"e,f")))
    code, out, _ = call("mushroom", *FEW)
    assert code == 0
    assert "bandits: 6 games to play\n" in out
    assert report.read_bytes() != before


@pytest.mark.processes
def test_jobs_do_not_change_the_numbers(call, tmp_path, data_dir):
    code, _, _ = call("statlog", *FEW[:-1], "2")
    assert code == 0
    with (tmp_path / "out" / "report" / "bandits.csv").open() as file:
        rows = {(r["method"], r["seed"]): float(r["reward"]) for r in csv.DictReader(file)}
    for seed in (0, 1):
        unit = BanditUnit(method="greedy", seed=seed, dataset="statlog", rounds=41, data="")
        assert play_unit(unit, data_dir)["reward"] == rows["greedy", str(seed)]


def test_the_seed_decides_the_game_whatever_was_drawn_before(data_dir):
    import torch

    unit = BanditUnit(method="badam", seed=1, dataset="mushroom", rounds=60, data="")
    first = play_unit(unit, data_dir)
    torch.manual_seed(123)
    assert play_unit(unit, data_dir) == first
    other = unit.model_copy(update={"seed": 2})
    assert play_unit(other, data_dir)["rewards"] != first["rewards"]


def test_the_cumulative_sums_end_where_the_totals_are(data_dir):
    unit = BanditUnit(method="uniform", seed=0, dataset="statlog", data="")
    numbers = play_unit(unit, data_dir)
    assert numbers["places"][0] == 1
    assert numbers["places"][-1] == 150 == numbers["optimum"]
    assert numbers["rewards"][-1] == numbers["reward"]
    assert numbers["regret"] == numbers["optimum"] - numbers["reward"]
    assert all(b >= a for a, b in zip(numbers["rewards"], numbers["rewards"][1:], strict=False))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mushrooms"], "'mushrooms' is none of mushroom, statlog, adult"),
        (["--runs", "0"], "'0' is not a whole number of at least 1"),
        (["--method", "ucb"], "invalid choice: 'ucb'"),
    ],
)
def test_a_misuse_is_said_in_one_line(call, words, said):
    code, _, err = call(*words)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_damaged_set_is_said_in_one_line_before_the_work(call, data_dir, jobs):
    path = data_dir / "bandits" / "statlog_shuttle.csv.gz"
    path.write_bytes(path.read_bytes()[:200])
    code, out, err = call("statlog", *FEW[:-1], jobs)
    assert code == 1
    assert err.startswith(f"vcl-radial: {path}: ")
    assert err.count("\n") == 1
    assert "seed" not in out


@pytest.mark.parametrize("option", ["--out", "--to"])
def test_a_folder_that_cannot_be_made_is_said_before_the_work(
    data_dir, tmp_path, monkeypatch, capsys, option
):
    monkeypatch.setattr(runner, "carry_out", pytest.fail)
    (tmp_path / "file").write_text("")
    places = {"--out": tmp_path / "out", option: tmp_path / "file"}
    words = [str(word) for place in places.items() for word in place]
    assert command_line.main(["bandit", *FEW, "--data-dir", str(data_dir), *words]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "file: cannot be written" in line


def result(dataset, method, relative, seed=0):
    unit = BanditUnit(method=method, seed=seed, dataset=dataset, data="")
    numbers = {"relative": relative, "regret": 1 - relative, "optimum": 1.0}
    return unit, numbers, {}


def test_claims_are_decided_by_the_means():
    def verdicts(badam, bbb, vadam, greedy):
        pairs = {"badam": badam, "bbb": bbb, "vadam": vadam, "greedy": greedy}
        return [c.agrees for c in make_claims([result("mushroom", m, r) for m, r in pairs.items()])]

    assert verdicts(0.74, 0.60, 0.76, 0.64) == [True, True, True]
    assert verdicts(0.5, 0.6, 0.4, 0.6) == [False, False, False]
    # As the paper's own table has it for all three sets.
    for dataset, row in PUBLISHED.items():
        found = make_claims([result(dataset, m, mean) for m, (mean, _) in row.items()])
        assert [c.agrees for c in found] == [True] * len(found)


def test_ours_stand_beside_the_published():
    results = [result("adult", "vadam", r, seed) for seed, r in enumerate((0.2, 0.3))]
    assert make_table([*results, result("adult", "radial", 0.5)]).rows == [
        ["adult", "VADAM", "0.26 ± 0.02", "0.25 ± 0.07", "2", "1", "1"],
        ["adult", "radial (ours)", "–", "0.50", "1", "0", "1"],
    ]
    assert mean_and_deviation([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))


TWO_GAMES = """
import functools, os, sys, time
from pathlib import Path
from vcl_radial.tracks.bandits import runner

play_unit = runner.play_unit

@functools.wraps(play_unit)
def play_or_wait(unit, data_dir):
    "The games of the first two seeds end, all others last for ever."
    if unit.seed < 2:
        return play_unit(unit, data_dir)
    (Path(__file__).parent / f"{os.getpid()}.waiting").touch()
    while True:
        time.sleep(0.1)

runner.play_unit = play_or_wait  # in the workers too, which import this module
if __name__ == "__main__":
    from vcl_radial.cli import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.processes
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_command_keeps_its_finished_games_and_leaves_no_worker(how, tmp_path, data_dir):
    program = tmp_path / "two_games.py"
    program.write_text(TWO_GAMES)
    words = ["bandit", "statlog", "--runs", "40", "--method", "greedy", "--jobs", "2"]
    out = tmp_path / "out"
    child = subprocess.Popen(
        [sys.executable, program, *words, "--out", out],
        env=os.environ | {DATA_VARIABLE: str(data_dir), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(list(tmp_path.glob("*.waiting"))) < 2:
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    finished = sorted(out.rglob("seed-*.json"))
    assert len(finished) == 2
    child.send_signal(how)
    # The output ends when the last of its writers does: the workers have it too.
    _, err = child.communicate()
    if how == signal.SIGTERM:
        assert child.returncode == 130, err
        assert err.splitlines()[-1].endswith("goes on from what is finished")
        assert "Traceback" not in err
    assert sorted(out.rglob("seed-*.json")) == finished


def test_a_result_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "out").write_text("")
    unit = BanditUnit(method="uniform", seed=0, dataset="adult", data="")
    with pytest.raises(UserError, match="cannot be written"):
        write(unit, tmp_path / "out", {}, {})


@pytest.mark.usefixtures("no_pictures")
def test_rounds_in_which_nothing_can_be_earned_have_no_relative_reward(call, data_dir, tmp_path):
    path = data_dir / "bandits" / "mushroom.csv.gz"
    header, *rows = gzip.decompress(path.read_bytes()).decode().splitlines()
    poisonous = [row for row in rows if row.startswith("p")]
    path.write_bytes(gzip.compress("\n".join([header, *poisonous, ""]).encode()))
    code, out, err = call("mushroom", *FEW[:2], "--rounds", "1", *FEW[4:])
    assert (code, err) == (0, "")
    assert "nan of the optimum" in out
    assert "| mushroom | uniform | -0.93 ± 0.09 | nan | 2 | 0 | 0 |" in out
    with (tmp_path / "out" / "report" / "bandits.csv").open() as file:
        assert all(math.isnan(float(row["relative"])) for row in csv.DictReader(file))
    unit, numbers, environment = result("mushroom", "badam", math.nan)
    assert make_claims([(unit, numbers, environment), result("mushroom", "bbb", math.nan)]) == []
