"""A run: left and taken up again, kept when finished, and never half a lie."""

import argparse
import json
import math
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import retinopathy_helpers
import torch
from retinopathy_helpers import execute, recipe

from vcl_radial import native
from vcl_radial.cli import run as run_command
from vcl_radial.errors import Diverged, UserError
from vcl_radial.report.gather import gather
from vcl_radial.runs import catalogue, runner
from vcl_radial.runs.catalogue import plan
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.retinopathy import execute as execute_module
from vcl_radial.tracks.retinopathy.settings import TABLES, DataSettings, Run

SYNTHETIC, EYEPACS = "retinopathy-synthetic", "retinopathy-eyepacs"
RECIPES = catalogue.folder("method", "retinopathy")

pytestmark = pytest.mark.usefixtures("no_pictures")


def run_of(seed=0, **keys):
    return Run(benchmark="b", method="m", seed=seed, data=DataSettings(), recipe=recipe(**keys))


def content(folder):
    found = {name: (folder.path / f"{name}.csv").read_text() for name in TABLES}
    history = pd.read_csv(folder.path / "history.csv").drop(columns="seconds")
    return {**found, "history": history.to_csv()}


class Stop(BaseException):
    pass


def stop_after(epochs):
    left = iter(range(epochs))

    def on_epoch(step):
        if next(left, None) is None:
            raise Stop

    return on_epoch


def test_a_run_that_is_stopped_again_and_again_ends_with_the_same_files(tmp_path):
    sites = [retinopathy_helpers.prepared(shifted=True)]
    run = run_of(members=2, epochs=2, train_samples=2)
    whole = RunFolder(tmp_path / "whole", run)
    execute(whole, sites)
    parts = RunFolder(tmp_path / "parts", run)
    for epochs in (0, 1, 0):
        with pytest.raises(Stop):
            execute(parts, sites, on_epoch=stop_after(epochs))
        assert not parts.finished()
        torch.rand(3)
    execute(parts, sites)
    assert content(parts) == content(whole)
    assert parts.finished()
    assert not parts.checkpoint.exists()
    spec = tomllib.loads((parts.path / "spec.toml").read_text())
    assert Run.model_validate({k: v for k, v in spec.items() if k != "track"}) == run
    facts = json.loads((parts.path / "environment.json").read_text())
    assert "noise, drawn by a test" in facts["notices"]
    history = pd.read_csv(whole.path / "history.csv")
    assert history.groupby("member")["selected"].sum().tolist() == [1, 1]
    predicted = pd.read_csv(whole.path / "predictions.csv")
    assert set(predicted["set"]) == {"test", "idrid"}


def test_a_run_that_goes_on_without_the_compiled_library_says_so(
    tmp_path, prepared, monkeypatch, capsys
):
    folder = RunFolder(tmp_path, run_of(epochs=2))
    monkeypatch.setattr(native, "unavailable", lambda: None)
    with pytest.raises(Stop):
        execute(folder, [prepared], on_epoch=stop_after(0))
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(native, "unavailable", lambda: "switched off")
    execute(folder, [prepared])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{folder.checkpoint}: was computed on cpu with the compiled library; ")
    facts = json.loads((folder.path / "environment.json").read_text())
    assert (facts["device"], facts["compiled"]) == ("cpu", [False, True])


def test_seeds_differ(tmp_path, prepared):
    folders = [RunFolder(tmp_path, run_of(seed, epochs=1)) for seed in (0, 1)]
    for folder in folders:
        execute(folder, [prepared])
    assert content(folders[0])["predictions"] != content(folders[1])["predictions"]


def test_a_finished_run_that_was_altered_is_not_finished(tmp_path, prepared):
    folder = RunFolder(tmp_path, run_of(epochs=1))
    assert not folder.finished()
    execute(folder, [prepared])
    assert folder.finished()
    with (folder.path / "scores.csv").open("a") as file:
        file.write("\n")
    assert not folder.finished()


def test_a_damaged_checkpoint_is_named_and_one_of_another_run_refused(tmp_path, prepared, capsys):
    folder = RunFolder(tmp_path, run_of(epochs=2))
    with pytest.raises(Stop):
        execute(folder, [prepared], on_epoch=stop_after(0))
    sound = folder.checkpoint.read_bytes()
    folder.checkpoint.write_bytes(sound[:-1])
    lines = []
    execute(folder, [prepared], on_epoch=lines.append)
    assert (
        "checkpoint.pt: damaged (its checksum is wrong); this run starts" in capsys.readouterr().out
    )
    assert [step.epoch for step in lines] == [1, 2]
    other = RunFolder(tmp_path, run_of(seed=1, epochs=2))
    other.path.mkdir()
    other.checkpoint.write_bytes(sound)
    with pytest.raises(UserError, match="belongs to another spec"):
        execute(other, [prepared])


def test_a_step_that_does_not_fit_into_memory_names_the_batch_size(tmp_path, prepared, monkeypatch):
    def forward(*_):
        torch.empty(2**62, dtype=torch.uint8)  # what PyTorch's allocator says on this device

    monkeypatch.setattr("vcl_radial.tracks.retinopathy.training.categorical_nll", forward)
    folder = RunFolder(tmp_path, run_of(epochs=1))
    with pytest.raises(UserError, match="batch_size = 8: a step does not fit into memory; choose"):
        execute(folder, [prepared])
    assert not folder.checkpoint.exists()


def test_a_run_that_is_stopped_while_it_predicts_trains_no_more(tmp_path, prepared, monkeypatch):
    def stopped(*_):
        raise Stop

    folder, lines = RunFolder(tmp_path, run_of(epochs=1)), []
    with monkeypatch.context() as patch:
        patch.setattr(execute_module, "_predictions", stopped)
        with pytest.raises(Stop):
            execute(folder, [prepared])
    execute(folder, [prepared], on_epoch=lines.append)
    assert lines == []
    assert folder.finished()


# What a user may write


def test_every_shipped_recipe_is_valid_and_described():
    names = catalogue.names("method", "retinopathy")
    assert {"deterministic", "mc-dropout", "mfvi", "mfvi-tweaked", "radial"} <= set(names)
    runs = plan(SYNTHETIC, names, [0, 1], {})
    assert len(runs) == 2 * len(names)
    assert len({run.digest() for run in runs}) == len(names)
    by_name = {run.method: run.recipe for run in runs}
    assert by_name["deep-ensemble"].members == by_name["radial-ensemble"].members == 3


def test_overrides_go_to_recipe_or_data():
    (run,) = plan(EYEPACS, ["radial"], [3], {"epochs": 7, "data.size": 32})
    assert (run.recipe.epochs, run.data.size, run.data.shifted) == (7, 32, ["idrid"])


def test_a_recipe_of_ones_own_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('description = "mine"\nposterior = "none"\ndropout = 0.3\n')
    (run,) = plan(SYNTHETIC, [str(path)], [0], {})
    assert (run.method, run.recipe.dropout) == ("mine", 0.3)
    path.write_text("posterior =")
    with pytest.raises(UserError, match=r"mine.toml: not valid TOML"):
        plan(SYNTHETIC, [str(path)], [0], {})


def test_a_benchmark_of_ones_own_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'track = "retinopathy"\n[data]\ndataset = "synthetic"\nsize = 32\n[recipe]\nepochs = 7\n'
    )
    (run,) = plan(str(path), ["radial"], [0], {"data.patients": 9})
    assert (run.benchmark, run.recipe.epochs, run.data.size, run.data.patients) == (
        "mine",
        7,
        32,
        9,
    )
    path.write_text('track = "retinopathy"\n[date]\nsize = 32\n')
    with pytest.raises(UserError, match=r"mine.toml: unknown key 'date'; .* 'data'"):
        plan(str(path), ["radial"], [0], {})


def test_what_a_search_found_comes_before_set_and_after_all_else(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        "epochs = 3\nbatch_size = 5\n"
        "[tuned.retinopathy-synthetic]\nbatch_size = 7\nlearning_rate = 0.5\n"
    )
    (plain,) = plan(SYNTHETIC, [str(path)], [0], {})
    (tuned,) = plan(SYNTHETIC, [str(path)], [0], {"learning_rate": 0.1}, tuned=True)
    assert (plain.recipe.batch_size, plain.recipe.learning_rate) == (5, 1e-4)
    assert (tuned.recipe.epochs, tuned.recipe.batch_size, tuned.recipe.learning_rate) == (3, 7, 0.1)
    with pytest.raises(UserError, match=r"mine\.toml: was not tuned on .*vcl-radial sweep"):
        plan(EYEPACS, [str(path)], [0], {}, tuned=True)


def test_every_shipped_tuned_table_is_valid():
    for name in catalogue.names("method", "retinopathy"):
        table = tomllib.loads((RECIPES / f"{name}.toml").read_text())
        for benchmark in table.get("tuned", {}):
            assert plan(benchmark, [name], [0], {}, tuned=True)


def test_runs_on_validation_data_are_others():
    plain, test, validation = (
        plan(SYNTHETIC, ["radial"], [0], chosen)[0]
        for chosen in ({}, {"evaluate_on": "test"}, {"evaluate_on": "validation"})
    )
    assert plain == test
    assert test.digest() != validation.digest()


MISTAKES = [
    (
        ("retinopathy-nowhere", ["radial"], {}),
        "unknown benchmark 'retinopathy-nowhere'; the nearest is 'retinopathy-",
    ),
    (
        (SYNTHETIC, ["radal"], {}),
        "method of retinopathy 'radal'; the nearest is 'radial'",
    ),
    (
        (SYNTHETIC, ["radial"], {"epoch": 3}),
        "unknown key 'epoch'; the nearest known .*'epochs'",
    ),
    (
        (SYNTHETIC, ["radial"], {"data.sizes": 3}),
        "unknown key 'data.sizes'; .*'size'",
    ),
    ((SYNTHETIC, ["radial"], {"epochs": 0}), "epochs = 0: input should be greater"),
    (
        (SYNTHETIC, ["radial"], {"truncation": 1.0}),
        'truncation needs posterior = "gaussian"',
    ),
    ((SYNTHETIC, ["mfvi"], {"pretrain_epochs": 100}), "must be below epochs"),
    ((SYNTHETIC, ["deterministic"], {"pretrain_epochs": 1}), "needs a posterior"),
    (
        (SYNTHETIC, ["radial"], {"data.dataset": "cats"}),
        "data.dataset = 'cats': .*choose from",
    ),
    (
        (EYEPACS, ["radial"], {"data.shifted": ["eyepacs-subset"]}),
        "which is trained on",
    ),
    (("retinopathy-eyepacs-idrid", ["radial"], {"data.shifted": ["idrid"]}), "which is trained on"),
    (
        (EYEPACS, ["radial"], {"data.shifted": ["kaggle-eyepacs"]}),
        "is a part of kaggle-eyepacs",
    ),
    (
        (EYEPACS, ["radial"], {"data.then": ["eyepacs-subset"]}),
        "which is the dataset",
    ),
    ((SYNTHETIC, ["radial"], {"data.parts": "eye"}), "data.parts = 'eye'"),
    ((SYNTHETIC, ["radial"], {"data.validation": 0.0}), 'set select = "last"'),
    (
        (
            SYNTHETIC,
            ["radial"],
            {"data.validation": 0.0, "evaluate_on": "validation"},
        ),
        "needs data.validation above 0",
    ),
]


@pytest.mark.parametrize(("given", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_a_mistake_is_said_in_one_line_with_its_mend(given, words):
    benchmark, methods, overrides = given
    with pytest.raises(UserError, match=words) as said:
        plan(benchmark, methods, [0], overrides)
    assert "\n" not in str(said.value)


def command(*arguments):
    parser = argparse.ArgumentParser()
    run_command.add(parser.add_subparsers())
    options = parser.parse_args(["run", *arguments])
    return options.command(options)


TINY = (
    "epochs=1",
    "channels=1",
    "batch_size=8",
    "eval_samples=2",
    "data.size=8",
    "data.patients=40",
    "data.validation=0.2",
)


def tiny(out, *methods):
    at = ["--out", str(out), "--device", "cpu"]
    return [SYNTHETIC, "--method", *methods, *at, "--set", *TINY]


def test_the_command_trains_scores_and_keeps_what_is_done(tmp_path, capsys):
    arguments = tiny(tmp_path, "radial", "deterministic")
    assert command(*arguments) == 0
    first = capsys.readouterr().out
    assert "retinopathy-synthetic: 2 runs to do" in first
    assert "SYNTHETIC" in first
    assert "30%" in first
    assert command(*arguments) == 0
    again = capsys.readouterr().out
    assert "all 2 runs were finished before" in again
    assert "SYNTHETIC" in again
    assert first[first.index("AUC in %") :] == again[again.index("AUC in %") :]
    assert len(list(Path(tmp_path).glob("retinopathy-synthetic/*/seed-0-*/done"))) == 2


@pytest.mark.processes
def test_two_jobs_end_with_the_scores_of_one(tmp_path, capfd, monkeypatch):
    methods = "radial", "deterministic", "mfvi"
    monkeypatch.setattr(runner, "available_cores", lambda: 2)
    assert command(*tiny(tmp_path / "two", *methods), "--jobs", "2") == 0
    said = capfd.readouterr().out
    assert all(f"[{k} of 3]" in said for k in (1, 2, 3))
    monkeypatch.setattr(runner, "available_cores", lambda: 1)
    assert command(*tiny(tmp_path / "one", *methods)) == 0
    scores = list((tmp_path / "one").glob("*/*/seed-*/scores.csv"))
    assert len(scores) == 3
    for path in scores:
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert other.read_bytes() == path.read_bytes()


def test_predictions_that_are_no_numbers_are_no_result(tmp_path, prepared, monkeypatch):
    monkeypatch.setattr(
        execute_module, "predict", lambda *_, **__: torch.full((1, len(prepared.data), 2), math.nan)
    )
    folder = RunFolder(tmp_path, run_of(epochs=1))
    with pytest.raises(Diverged, match="predictions on test are not numbers"):
        execute(folder, [prepared])
    assert not folder.finished()


def test_the_same_method_given_twice_is_one():
    assert len(plan(SYNTHETIC, ["radial", "radial"], [0], {})) == 1


def test_the_report_tells_why_a_run_diverged(tmp_path, capsys, monkeypatch):
    arguments = tiny(tmp_path, "radial", "deterministic")
    assert command(*tiny(tmp_path, "radial")) == 0
    with monkeypatch.context() as changed:
        nan = torch.full((1, 1, 2), math.nan)
        changed.setattr(execute_module, "predict", lambda *_, **__: nan)
        assert command(*arguments) == 1
    capsys.readouterr()
    (left,) = tmp_path.glob("retinopathy-synthetic/deterministic/seed-*")
    runs, (line,) = gather(tmp_path)
    assert [run.method for run in runs] == ["radial"]
    assert line.startswith(f"{left}: failed: predictions on")
