"""Runs of the regression track, from the command line and a benchmark's file to the folder."""

import csv
import re
from pathlib import Path

import pytest
import torch
from failing import refuses

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.reporting.results import load_results
from vcl_radial.runs import catalogue, planning
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute_together
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.regression import execute, files, lanes
from vcl_radial.tracks.regression.settings import DataSettings
from vcl_radial.tracks.regression.tables import INTERVALS
from vcl_radial.tracks.regression.track import Regression

TINY = ["--jobs", "1", "--device", "cpu", "--set", "steps=3", "eval_samples=2"]


@pytest.fixture
def call(capfd, tmp_path, monkeypatch):
    """Call `run` in an empty folder without data; give the exit code, the output and the errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capfd.readouterr()
        code = main(["run", *arguments])
        return code, *capfd.readouterr()

    return call


def rows(path):
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_seed_is_a_split_and_finished_ones_are_kept(call):
    arguments = ["diabetes", "--method", "bayes-linear", "radial-vcl", "--seeds", "2", *TINY]
    code, out, _ = call(*arguments)
    assert code == 0
    assert "diabetes: 4 runs to do" in out
    to = Path("runs/report/diabetes")
    assert (to / "log-likelihood.svg").is_file()
    table = rows(to / "results.csv")
    assert {(r["set"], r["method"], r["split"]) for r in table} == {
        ("diabetes", method, split) for method in ("bayes-linear", "radial-vcl") for split in "01"
    }
    assert "Beside the papers" not in (to / "summary.md").read_text()
    assert {*load_results("runs").summary()["part"]} == {"diabetes"}  # scores know their set
    code, out, _ = call(*arguments)
    assert code == 0
    assert "all 4 runs were finished before" in out
    assert rows(to / "results.csv") == table


def test_the_page_holds_radial_against_gaussian(call):
    assert call("diabetes", "--method", "gaussian-vcl", "radial-vcl", "--seeds", "2", *TINY)[0] == 0
    page = Path("runs/report/diabetes/summary.md").read_text()
    table = {
        (r["method"], r["metric"], r["split"]): float(r["value"])
        for r in rows("runs/report/diabetes/results.csv")
    }
    gaps = [table["radial-vcl", "rmse", k] - table["gaussian-vcl", "rmse", k] for k in "01"]
    (line,) = re.findall(
        r"^## radial-vcl minus gaussian-vcl$.*?^\| diabetes \| RMSE \|(.*?) \|$",
        page,
        re.S | re.M,
    )
    assert line.split("|")[0].strip() == "2"
    assert float(line.split("|")[1].split("±")[0]) == pytest.approx(sum(gaps) / 2, abs=6e-4)


def test_a_sequence_ends_for_the_linear_model_where_all_rows_at_once_do(call):
    assert (
        call(
            "diabetes-sequence", "--method", "bayes-linear", "gaussian-vcl", "--seeds", "2", *TINY
        )[0]
        == 0
    )
    to = Path("runs/report/diabetes-sequence")
    gaps = {(r["method"], r["metric"]): float(r["gap"]) for r in rows(to / "summary.csv")}
    assert gaps["bayes-linear", "rmse"] == pytest.approx(0, abs=1e-6)
    assert abs(gaps["gaussian-vcl", "rmse"]) > 1e-3
    assert {row["slice"] for row in rows(to / "results.csv")} == {*"012345"}
    assert (to / "in-sequence.png").is_file()


def test_a_table_of_the_users_own_is_read_from_beside_its_benchmark(call):
    Path("mine").mkdir()
    text = "\n".join(f"{k};{k % 7};{'a' if k % 2 else 'b'};{3 * k + k % 7}" for k in range(40))
    Path("mine/houses.csv").write_text(f"size;rooms;kind;price\n{text}\n")
    Path("mine/houses.toml").write_text(
        'track = "regression"\nmethods = ["bayes-linear"]\n'
        '[data]\ntable = "houses.csv"\ntarget = "price"\nsplits = 3\n'
    )
    code, out, err = call("mine/houses.toml", "--seeds", "3", *TINY)
    assert code == 0
    assert "houses  bayes-linear seed 2" in out
    summary = "40 rows, 3 inputs (2 of numbers, 1 of texts as 2 columns)"
    assert err.count(f"vcl-radial: mine/houses.csv: {summary}\n") == 1
    scores = rows(next(Path("runs/houses/bayes-linear").glob("seed-0-*/scores.csv")))
    assert float(scores[1]["value"]) < 1  # RMSE of a linear function
    code, _, err = call("mine/houses.toml", "--seeds", "4", *TINY)
    assert code == 1
    assert "houses: there is no split 3: it has 3, one for each of --seeds 3; raise" in err
    # Other rows are another table.
    Path("mine/houses.csv").write_text(f"size;rooms;kind;price\n{text}\n1;1;a;9\n")
    assert "houses: 3 runs to do" in call("mine/houses.toml", "--seeds", "3", *TINY)[1]


def test_the_rows_of_a_table_are_said_once_for_all_runs_on_it(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(40)))
    data = {"table": str(path), "target": "y", "splits": 2}
    (run,) = plan("diabetes", ["bayes-linear"], [0])
    runs = [
        run.model_copy(update={"data": DataSettings(**data, slices=slices), "seed": seed})
        for slices in (None, 2)
        for seed in (0, 1)
    ]
    Regression().check_data(runs, None)
    assert capsys.readouterr().err == f"vcl-radial: {path}: 40 rows, 1 input (1 of numbers)\n"


def test_a_run_that_diverges_is_recorded_and_the_others_finish(call, monkeypatch):
    score = execute.score

    def one_lost(*arguments):
        scores = score(*arguments)
        return [scores[0], scores[1] | {"rmse": float("nan")}, *scores[2:]]

    monkeypatch.setattr(execute, "score", one_lost)
    code, _, err = call("diabetes", "--method", "gaussian-vcl", "--seeds", "3", *TINY)
    assert code == 1
    assert (
        "vcl-radial: diabetes  gaussian-vcl seed 1: training diverged: rmse is nan; lower "
        "learning_rate\n" in err
    )
    (failed,) = Path("runs").rglob("failed.txt")
    assert failed.parent.name.startswith("seed-1-")
    monkeypatch.setattr(execute, "score", score)
    code, out, _ = call("diabetes", "--method", "gaussian-vcl", "--seeds", "3", *TINY)
    assert code == 0
    assert "diabetes: 1 run to do, 1 at a time, 2 kept from before" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["uci"], "--data-dir"),
        (["uci", "--set", "data.sets=bosten", "--data-dir", "."], "uci/bosten: "),
        (["uci", "--set", "data.sets=[yacht]"], "quotes"),
        (["uci", "--set", "data.sets=[]"], "uci: data.sets = []: "),
        (["uci", "--set", "data.table=mine.csv"], "uci: data.table: "),
        (["uci", "--set", "data.set=yacht"], "uci: data.set: "),
        (["diabetes", "--seeds", "21"], "diabetes: there is no split 20: it has 20"),
        (["diabetes", "--set", "strategy=magic"], "strategy = 'magic'"),
        (["sliced.toml"], "data.slices = 400: "),
        (["diabetes", "--set", "stepz=3"], "'steps'"),
        (["diabetes", "--set", "steps=0"], "steps = 0"),
        (["diabetes", "--set", "epochs=3"], "the nearest known one is 'steps'"),
        (["diabetes", "--set", "kl_weight=0.5"], "kl_weight = 0.5: "),
        (["diabetes", "--set", "hidden=50"], "hidden = 50: "),
        (["diabetes", "--set", "data.validation=1.5"], "data.validation = 1.5"),
        (["diabetes", "--set", "data.splits=5"], "splits"),
        (["diabetes", "--set", "data.uncertainty=true", "data.validation=0.01"], "data.validation"),
        (
            ["diabetes", "--set", "data.uncertainty=true", "evaluate_on=validation"],
            "data.uncertainty",
        ),
        (["diabetes", "--device", "cuda"], "CPU"),
    ],
)
def test_a_mistake_is_refused_in_one_line_before_anything_is_trained(
    call, arguments, named, monkeypatch
):
    monkeypatch.setattr(execute, "TableRuns", pytest.fail)
    Path("sliced.toml").write_text(
        'track = "regression"\nmethods = ["bayes-linear"]\n'
        '[data]\nsets = ["diabetes"]\nslices = 400'
    )
    code, _, err = call(*arguments, "--jobs", "1")
    assert code == 1
    assert named in err
    assert err.count("\n") == 1


def plan(*arguments, **settings):
    return planning.plan(*arguments, settings=settings)


def test_every_shipped_method_is_run_and_each_of_them_is_named_once():
    recipes = {
        run.recipe.strategy for run in plan("uci", catalogue.names("method", "regression"), [0])
    }
    assert recipes == {*lanes.names()}
    names = [run.data.name for run in plan("uci", ["gaussian-vcl"], [0])]
    assert names == [*files.FOLDERS]
    twice = plan("uci", ["gaussian-vcl"], [0], **{"data.sets": ["yacht", "energy", "yacht"]})
    assert [run.data.name for run in twice] == ["yacht", "energy"]


def test_a_published_set_is_left_out_of_splits_that_it_has_not():
    runs = plan("uci", ["gaussian-vcl"], range(6))
    assert {run.data.name for run in runs if run.seed == 4} == {*files.FOLDERS}
    assert {run.data.name for run in runs if run.seed == 5} == {*files.FOLDERS} - {"protein"}
    # ... but it is refused where nothing else is asked for.
    alone = plan("uci", ["gaussian-vcl"], [5], **{"data.sets": "protein"})
    assert [run.data.name for run in alone] == ["protein"]


def test_a_sequence_is_set_beside_all_rows_at_once_with_as_many_steps():
    in_sequence, at_once = plan("diabetes-sequence", ["gaussian-vcl"], [0], steps=40)
    assert (in_sequence.data.slices, at_once.data.slices) == (5, 1)
    assert in_sequence.steps == at_once.steps == at_once.recipe.steps == 200
    assert in_sequence.label == "diabetes in 5 slices  gaussian-vcl seed 0"
    assert at_once.label == "diabetes at once  gaussian-vcl seed 0"


def test_runs_of_one_table_and_one_shape_train_together_the_longest_first():
    sets = {"data.sets": ["yacht", "energy"]}
    runs = plan("uci", ["gaussian-vcl", "rdp-vcl", "bayes-linear"], range(3), **sets)
    runs += plan("uci", ["gaussian-vcl"], [0, 1], **sets, learning_rate=1e-2)
    runs += plan("uci", ["gaussian-vcl"], [0], **sets, batch_size=7)
    work = Regression().batches(runs, 4)
    assert sorted(run.label for batch in work for run in batch) == sorted(r.label for r in runs)
    for batch in work:
        assert len({(r.data.name, r.recipe.strategy, r.recipe.batch_size) for r in batch}) == 1
    assert max(map(len, work)) == 4
    assert [batch[0].method for batch in work] == ["rdp-vcl"] * 2 + ["gaussian-vcl"] * 6 + [
        "bayes-linear"
    ] * 2


def test_two_files_of_one_name_are_refused(tmp_path):
    (tmp_path / "gaussian-vcl.toml").write_text('method = "badam"')
    with refuses("gaussian-vcl"):
        plan("uci", ["gaussian-vcl", str(tmp_path / "gaussian-vcl.toml")], [0])


def test_every_method_of_tables_can_be_made_before_any_trains():
    """Those of a benchmark's command without --method among them."""
    folder = Path(__file__).parents[2] / "baselines/regression"
    names = [path.stem for path in folder.glob("*.toml")]
    assert "rdp-vcl" in names
    Regression().check_data(planning.plan("diabetes", names, [0]), None)


def test_an_interrupted_batch_resumes_after_its_last_slice_and_its_runs_may_part(tmp_path):
    runs = planning.plan("diabetes-sequence", ["gaussian-vcl"], [0, 1], {"steps": 20})
    runs, track = [run for run in runs if run.data.slices == 5], Regression()
    whole, stopped = (RunContext(tmp_path / name, threads=1) for name in ("whole", "stopped"))
    assert execute_together(track, runs, whole) == [None, None]

    def stop(run, step):
        if (run.seed, step.done) == (1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute_together(track, runs, stopped, stop)
    assert [RunFolder(stopped.out, run).checkpoint.exists() for run in runs] == [True, True]
    for run in runs:
        assert execute_together(track, [run], stopped) == [None]
        paths = [RunFolder(context.out, run).path / "scores.csv" for context in (whole, stopped)]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_intervals_are_scored_on_request_with_rows_that_no_run_trains_on(call):
    arguments = ["--method", "bayes-linear", "gaussian-vcl", "--seeds", "2", *TINY]
    asked = [*arguments, "data.uncertainty=true"]
    assert call("diabetes", *asked)[0] == 0
    table = rows("runs/report/diabetes/results.csv")
    assert {r["metric"] for r in table} == {"log_likelihood", "rmse", *INTERVALS}
    page = Path("runs/report/diabetes/summary.md").read_text()
    assert page.count("## What it does not know") == 1
    assert "width" not in page.partition("## What it does not know")[0]
    # A run on validation rows trains on the same rows; its scores are of others.
    assert call("diabetes", *arguments, "evaluate_on=validation", "--out", "chosen")[0] == 0
    pattern = "diabetes/bayes-linear/seed-0-*"
    one, other = (vr.load(next(Path(out).glob(pattern))) for out in ("runs", "chosen"))
    x = torch.zeros(1, 10)
    assert torch.equal(one.predict(x).mean, other.predict(x).mean)
