"""Sweeps over referral benchmarks, on a few drawn photographs."""

import argparse
import pickle
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_sweeps import plans_of, swept

from vcl_radial.cli import run as run_command
from vcl_radial.cli.arguments import parse_setting
from vcl_radial.data.fundus import FundusData
from vcl_radial.errors import UserError
from vcl_radial.runs import tracks
from vcl_radial.runs.attempt import Job, PruningThreshold, attempt
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan as planned
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.recipes import command_for
from vcl_radial.sweeps.report import write_sweep_report
from vcl_radial.sweeps.results import read_results
from vcl_radial.tracks.retinopathy import checksums, prepare
from vcl_radial.tracks.retinopathy.track import Retinopathy

DATA = {"patients": 40, "size": 8, "validation": 0.25}
TINY = {
    "benchmark": "retinopathy-synthetic",
    "method": "naive",
    "trials": 2,
    "fixed": {
        "channels": 1,
        "select": "best",
        "epochs": 2,
        "batch_size": 8,
        "eval_samples": 3,
        "data": DATA,
    },
    "search": {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}},
}


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def searched(_cache, tmp_path_factory: pytest.TempPathFactory):
    """A sweep of two methods, one with a key of its own."""
    out = tmp_path_factory.mktemp("searched")
    search = {
        **TINY["search"],
        "initial_noise": {"choices": [1e-3, 1e-1], "when": {"method": "radial-vcl"}},
        "data.artefacts": [0.0, 0.5],
    }
    changes = {"method": ["naive", "radial-vcl"], "trials": 4, "search": search}
    return swept(out, **{**TINY, **changes}), out / "tiny"


def test_the_score_is_the_auc_of_the_best_epoch_on_the_validation_part(searched) -> None:
    (study, _), path = searched
    for number, trial in enumerate(study.trials):
        (run,) = trial.runs
        folder = SweepFolder(path).run(run).path
        history = pd.read_csv(folder / "history.csv")
        assert study.results[number].score == pytest.approx(history["validation_auc"].max())
        (site,) = prepare.prepare(run.data)
        wanted = site.data.photographs.select(site.split.validation)
        predicted = pd.read_csv(folder / "predictions.csv")
        assert set(predicted["part"]) == {"validation"}
        assert list(predicted["image"]) == [row.name for row in wanted.rows]


def test_a_key_is_searched_with_the_methods_that_it_is_for(searched) -> None:
    (points, radial), _ = searched
    assert not any("initial_noise" in trial.parameters for trial in points.trials)
    for trial in radial.trials:
        assert trial.runs[0].recipe.initial_noise == trial.parameters["initial_noise"]
        assert trial.runs[0].data.artefacts == trial.parameters["data.artefacts"]


def test_neither_test_nor_shifted_photographs_are_ever_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, asked, seen = prepare.load_photographs, [], []

    def drawn(name, *others, **settings):
        """Drawn photographs under the published set's name."""
        asked.append(name)
        return load("synthetic", *others, **settings)

    def images(self, rows):
        seen.extend(np.asarray(rows).tolist())
        return original(self, rows)

    original = FundusData.images
    monkeypatch.setattr(prepare, "load_photographs", drawn)
    monkeypatch.setattr(checksums, "load_photographs", drawn)
    monkeypatch.setattr(checksums, "_checksum", checksums._checksum.__wrapped__)  # remember nothing
    (plan,) = plans_of(**{**TINY, "benchmark": "retinopathy-aptos", "method": "radial-vcl"})
    sites = prepare.prepare(plan.base.data)
    untouched = set(sites[0].split.test.tolist())
    assert plan.base.data.shifted == ["idrid"]
    monkeypatch.setattr(FundusData, "images", images)
    asked.clear()
    keys = {"benchmark": "retinopathy-aptos", "method": "radial-vcl", "trials": 1}
    swept(tmp_path, **{**TINY, **keys})
    assert set(asked) == {"aptos"}
    assert set(seen) == set(range(80)) - untouched
    # A run that is scored on test data does look at them.
    run = plan.base.model_copy(update={"evaluate_on": "test"})
    execute(Retinopathy(), run, RunContext(tmp_path))
    assert set(seen) >= untouched


def test_a_run_is_given_up_after_an_epoch_and_can_go_on_to_the_same_numbers(
    tmp_path: Path,
) -> None:
    (plan,) = plans_of(**TINY)
    run, steps = plan.base, []
    where = [RunContext(tmp_path / name) for name in ("given up", "whole")]

    def on_step(run, step) -> None:
        steps.append(step)

    too_low = Job((run,), (PruningThreshold(1, 101.0, "too low"),))
    for epochs in (1, 0):  # the second time it is known beforehand
        (end,) = attempt(too_low, on_step, Retinopathy(), where[0])
        assert end.status == "pruned"
        assert end.fault.startswith("after epoch 1: ")
        assert [step.done for step in steps] == [0, 1][: 2 * epochs]
        steps.clear()
    for context in where:
        (end,) = attempt(Job((run,)), on_step, Retinopathy(), context)
        assert end.status == "finished"
    given_up, whole = (RunFolder(context.out, run) for context in where)
    assert [step.done for step in steps] == [1, 2, 0, 1, 2]
    assert {step.message for step in steps} == {"epoch 1 of 2", "epoch 2 of 2"}
    name = "predictions.csv"
    assert (given_up.path / name).read_bytes() == (whole.path / name).read_bytes()
    track = Retinopathy()
    assert track.scores_so_far(given_up) == track.scores_so_far(whole)
    assert list(track.scores_so_far(whole).values()) == [step.score for step in steps[3:]]
    assert not (whole.path / "weights.pt").exists()


def test_what_counts_of_a_network_is_its_best_epoch_so_far(tmp_path: Path) -> None:
    (plan,) = plans_of(**{**TINY, "fixed": {**TINY["fixed"], "epochs": 4}})
    attempt(Job((plan.base,)), lambda run, step: None, Retinopathy(), RunContext(tmp_path))
    folder = RunFolder(tmp_path, plan.base)
    history = pd.read_csv(folder.path / "history.csv")
    best = history["validation_auc"].cummax()
    assert Retinopathy().scores_so_far(folder) == pytest.approx(dict(enumerate(best, start=1)))
    assert len(best) == 4


@pytest.mark.slow
@pytest.mark.drawn
def test_the_command_of_the_report_runs_the_best_configuration_on_test_data(
    searched, tmp_path: Path
) -> None:
    studies, path = searched
    write_sweep_report(path, tmp_path)
    results = read_results(path)
    assert results.objective == "validation_auc"
    parser = argparse.ArgumentParser()
    run_command.add(parser)
    for study, one in zip(studies, results.searched, strict=True):
        best = one.best
        assert best is not None
        assert (best.number, best.score) == (study.best(), study.results[study.best()].score)
        assert all(trial.seconds for trial in one.trials)
        assert one.chance == 50.0
        recipe = tmp_path / "retinopathy-synthetic" / f"best-{one.method}.toml"
        command = command_for(results, one, recipe, 5, best.parameters)
        options = parser.parse_args(shlex.split(command)[2:])
        settings = dict(map(parse_setting, options.settings))
        runs = planned(options.benchmark, options.methods, options.seeds, settings)
        wanted = study.plan.run(best.parameters, 0)
        assert {run.evaluate_on for run in runs} == {"test"}
        assert runs[0].data == wanted.data
        assert runs[0].recipe == wanted.recipe.model_copy(update={"eval_samples": 16})
    page = (tmp_path / "retinopathy-synthetic" / "summary.md").read_text()
    for stem in ("history", "distribution", "cost", "parallel-radial-vcl", "slice-naive"):
        assert f"({stem}.png)" in page
    assert "search for validation_auc (maximize it)" in page
    assert "a tenth of the way from chance to best" in page
    assert "learnt nothing (%)" in page
    assert "SYNTHETIC" in page
    assert "validation AUC (%)" in (tmp_path / "retinopathy-synthetic" / "cost.svg").read_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"benchmark": ["split-digits-multi-head", "retinopathy-synthetic"]},
            r"head \(continual\) and retinopathy-synthetic \(retinopathy\) cannot be in one",
        ),
        ({"objective": "average_accuracy"}, "'average_accuracy'; the nearest is 'valid"),
        ({"search": {"data.sizes": [8, 16]}}, "unknown key 'data.sizes'"),
        ({"fixed": {"data": {"validation": 0.0}}}, "needs data.validation above 0"),
    ],
)
def test_a_mistake_gets_one_line_that_names_the_file(changes, words) -> None:
    with pytest.raises(UserError, match=words) as error:
        plans_of(**{**TINY, **changes})
    assert str(error.value).startswith("tiny.toml: ")
    assert "\n" not in str(error.value)


def test_a_benchmark_of_ones_own_is_told_by_its_tables(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.toml", tmp_path / "other.toml"
    mine.write_text(
        'track = "retinopathy"\n[data]\ndataset = "synthetic"\npatients = 50\n'
        "[recipe]\nbatch_size = 4\n"
    )
    other.write_text('[stream]\ndataset = "digits"\n[recipe]\nbatch_size = 32\n')
    fixed = {"epochs": 1}
    (plan,) = plans_of(**{**TINY, "benchmark": str(mine), "fixed": fixed})
    assert (plan.label, plan.base.data.patients) == ("mine/naive", 50)
    assert (plan.base.recipe.batch_size, plan.base.evaluate_on) == (4, "validation")
    assert plan.sweep.objective == "validation_auc"
    (plan,) = plans_of(benchmark=str(other), fixed={**fixed, "batch_size": 32})
    assert plan.sweep.objective == "average_accuracy"
    with pytest.raises(UserError, match="cannot be in one sweep"):
        plans_of(benchmark=[str(mine), str(other)], fixed=fixed)


def test_networks_of_this_track_train_one_by_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lanes = 2"):
        swept(tmp_path, lanes=2, **TINY)


def test_a_job_can_be_sent_to_another_process() -> None:
    (plan,) = plans_of(**TINY)
    job = Job((plan.base,), (PruningThreshold(1, 50.0, "w"),))
    sent = pickle.loads(pickle.dumps(job))
    assert sent == job
    assert isinstance(tracks.find(sent.runs[0].TRACK), Retinopathy)
