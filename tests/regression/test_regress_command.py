import csv
import re
import shlex
from pathlib import Path

import pytest

from vcl_radial.cli import regress
from vcl_radial.cli.arguments import Parser
from vcl_radial.errors import UserError
from vcl_radial.tracks.regression import runner

TINY = ["--jobs", "1", "--splits", "2", "--set", "steps=3", "eval_samples=2"]


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Call the command in an empty folder without data; give its output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        parser = Parser()
        regress.add(parser.add_subparsers(parser_class=Parser))
        options = parser.parse_args(["regress", *arguments])
        capsys.readouterr()
        assert options.command(options) == 0
        return capsys.readouterr().out

    return call


def rows(path):
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_without_files_it_runs_on_diabetes_and_a_second_time_from_what_is_there(command):
    out = command("--method", "linear", "radial", *TINY)
    to = Path("runs/regression/report/diabetes")
    assert "diabetes: 2 units to do" in out
    assert str(to / "log-likelihood.png") in out
    assert (to / "log-likelihood.svg").is_file()
    table = rows(to / "results.csv")
    assert len(table) == 2 * 2 * 2  # methods, splits, metrics
    assert {row["set"] for row in table} == {"diabetes"}
    page = (to / "README.md").read_text()
    assert "Beside the papers" not in page
    words = next(line for line in page.splitlines() if line.startswith("    vcl-radial"))
    again = command(*shlex.split(words)[2:], "--jobs", "1")
    assert "0 units to do, 2 kept from before" in again
    assert rows(to / "results.csv") == table


@pytest.mark.usefixtures("no_pictures")
def test_the_page_holds_radial_against_mfvi(command):
    command("--method", "mfvi", "radial", *TINY, "--to", "there")
    page = Path("there/README.md").read_text()
    table = {
        (r["method"], r["metric"], r["split"]): float(r["value"]) for r in rows("there/results.csv")
    }
    gaps = [table["radial", "rmse", k] - table["mfvi", "rmse", k] for k in "01"]
    (line,) = re.findall(r"^## radial minus mfvi$.*?^\| diabetes \|(.*?) \|$", page, re.S | re.M)
    assert line.endswith(f"| {sum(gap < 0 for gap in gaps)} of 2")
    assert float(line.split("|")[2].split("±")[0]) == pytest.approx(sum(gaps) / 2, abs=6e-4)


@pytest.mark.usefixtures("no_pictures")
def test_settings_are_chosen_from_the_grid_split_by_split(command, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'sets = ["diabetes"]\nmethods = ["mfvi", "linear"]\nsearch_share = 0.5\n'
        "[recipe]\nsteps = 40\neval_samples = 5\n"
        "[[grid]]\nlearning_rate = [1e-9, 3e-2]\n"
    )
    out = command("mine.toml", "--tune", "--splits", "3", "--jobs", "1")
    assert "mine, choosing settings: 2 units to do" in out
    to = Path("runs/regression/report/mine")
    chosen = {(r["method"], r["setting"]) for r in rows(to / "results.csv")}
    # Whoever does not move has not learnt anything; and there is nothing to choose for the other.
    assert chosen == {("mfvi", "learning_rate=0.03"), ("linear", "")}
    page = (to / "README.md").read_text()
    assert "- diabetes, mfvi: learning_rate=0.03: 3" in page
    assert "training rows, and tried with 50 % of the steps (mfvi)." in page


@pytest.mark.usefixtures("no_pictures")
def test_a_sequence_ends_for_the_linear_model_where_all_rows_at_once_do(command):
    command("diabetes-sequence", "--method", "linear", "mfvi", *TINY, "--to", "there")
    gaps = {(r["method"], r["metric"]): float(r["gap"]) for r in rows("there/summary.csv")}
    assert gaps["linear", "rmse"] == pytest.approx(0, abs=1e-6)
    assert abs(gaps["mfvi", "rmse"]) > 1e-3
    assert {row["slice"] for row in rows("there/results.csv")} == {*"012345"}
    assert Path("there/in-sequence.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["uci"], "--data-dir"),
        (["uci", "--sets", "bosten"], "--sets bosten: choose from"),
        (["--set", "method=linear"], "--set method: is not a setting"),
        (["sliced.toml"], "sliced.toml: slices = 400: more than the 398 training rows of diabetes"),
        (["--set", "stepz=3"], "'stepz'"),
        (["--set", "steps"], "key=value"),
        (["--set", "steps=0"], "steps = 0"),
        (["diabetes-sequence", "--tune"], "--tune does not go with slices"),
        (["nothing.toml"], "no such file"),
        (["--out", "file/out", *TINY], "cannot be written"),
        (["--method", "linear", "--to", "file/to", *TINY], "cannot be written"),
    ],
)
def test_a_mistake_is_refused_in_one_line_before_anything_is_trained(
    command, arguments, words, monkeypatch
):
    monkeypatch.setattr(runner, "execute", pytest.fail)
    Path("file").write_text("")
    Path("sliced.toml").write_text('sets = ["diabetes"]\nmethods = ["linear"]\nslices = 400')
    with pytest.raises(UserError, match=words) as error:
        command(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("arguments", [["--splits", "0"], ["--seed", "-1"], ["--seed", "9" * 20]])
def test_an_impossible_argument_is_refused_by_its_name(command, arguments, capsys):
    with pytest.raises(SystemExit):
        command(*arguments)
    assert f"{arguments[0]}: " in capsys.readouterr().err
