"""A run: left and taken up again, kept when finished, and never half a lie."""

import json
import math
import tomllib

import pandas as pd
import pytest
import retinopathy_helpers
import torch
from failing import refuses
from retinopathy_helpers import Stop, execute, run_of

from vcl_radial.errors import Diverged
from vcl_radial.runs import catalogue
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy import execute as execute_module
from vcl_radial.tracks.retinopathy.settings import TABLES, Run
from vcl_radial.tracks.retinopathy.track import Retinopathy

ENSEMBLE = {"strategy": "deep_ensemble", "options": {"members": 2}}
SYNTHETIC, EYEPACS = "retinopathy-synthetic", "retinopathy-eyepacs"


def content(folder):
    texts = {name: (folder.path / f"{name}.csv").read_text() for name in TABLES}
    history = pd.read_csv(folder.path / "history.csv").drop(columns="seconds")
    return {**texts, "history": history.to_csv()}


def stop_after(epochs):
    left = iter(range(epochs))

    def on_epoch(step):
        if next(left, None) is None:
            raise Stop

    return on_epoch


def test_a_run_that_is_stopped_again_and_again_ends_with_the_same_files(tmp_path):
    sites = [retinopathy_helpers.prepared(shifted=True)]
    run = run_of(**ENSEMBLE, epochs=3, train_samples=2)
    whole = RunFolder(tmp_path / "whole", run)
    execute(whole, sites)
    parts = RunFolder(tmp_path / "parts", run)
    for epochs in (0, 1):
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
    assert history["selected"].sum() == 1
    predicted = pd.read_csv(whole.path / "predictions.csv")
    assert set(predicted["part"]) == {"test", "idrid", "validation"}
    assert set(pd.read_csv(whole.path / "scores.csv")["part"]) == {"test", "idrid"}


def test_a_step_that_does_not_fit_into_memory_names_the_batch_size(tmp_path, prepared, monkeypatch):
    def forward(*_):
        torch.empty(2**62, dtype=torch.uint8)  # what PyTorch's allocator says on this device

    monkeypatch.setattr("vcl_radial.likelihoods.base.Categorical.nll", forward)
    folder = RunFolder(tmp_path, run_of(epochs=1))
    with refuses("batch_size = 8"):
        execute(folder, [prepared])
    assert not folder.checkpoint.exists()


def test_a_run_that_is_stopped_while_it_predicts_trains_no_more(tmp_path, prepared, monkeypatch):
    def stopped(*_):
        raise Stop

    folder, lines = RunFolder(tmp_path, run_of(epochs=1)), []
    with monkeypatch.context() as patch:
        patch.setattr(execute_module.EpochTraining, "_predictions", stopped)
        with pytest.raises(Stop):
            execute(folder, [prepared])
    execute(folder, [prepared], on_epoch=lines.append)
    assert lines == []
    assert folder.finished()


# What a user may write


def test_every_shipped_recipe_is_another_one():
    names = catalogue.names("method", "retinopathy")
    assert {*Retinopathy.methods, "naive", "gaussian-vcl-tweaked", "mc-dropout"} <= set(names)
    runs = plan(SYNTHETIC, names, [0], {})
    assert len({run.digest() for run in runs}) == len(names)
    by_name = {run.method: run.recipe for run in runs}
    ensemble = by_name["radial-ensemble"]
    for samples in (ensemble.eval_samples, ensemble.validation_samples):
        assert samples % ensemble.options["members"] == 0


def test_a_benchmark_of_ones_own_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'track = "retinopathy"\n[data]\ndataset = "synthetic"\nsize = 32\n[recipe]\nepochs = 7\n'
    )
    (run,) = plan(str(path), ["radial-vcl"], [0], {"data.patients": 9})
    assert (run.benchmark, run.recipe.epochs, run.data.size, run.data.patients) == (
        "mine",
        7,
        32,
        9,
    )
    path.write_text('track = "retinopathy"\n[date]\nsize = 32\n')
    with refuses(path, "'date'", "'data'"):
        plan(str(path), ["radial-vcl"], [0], {})


@pytest.mark.parametrize(
    ("benchmark", "settings", "named"),
    [
        (SYNTHETIC, {"posterior": "radial", "truncation": 1.0}, ["truncation", "gaussian"]),
        (SYNTHETIC, {"data.dataset": "cats"}, ["data.dataset = 'cats'", "aptos"]),
        (EYEPACS, {"data.shifted": ["eyepacs-subset"]}, ["shifted", "'eyepacs-subset'"]),
        ("retinopathy-hospitals", {"data.shifted": ["idrid"]}, ["shifted", "'idrid'"]),
        ("retinopathy-odir", {"data.dataset": "odir-other"}, ["'odir-other'", "shifted"]),
        ("retinopathy-aptos", {"data.then": ["folder-other"]}, ["'folder-other'", "shifted"]),
        (EYEPACS, {"data.shifted": ["kaggle-eyepacs"]}, ["eyepacs-subset", "kaggle-eyepacs"]),
        (EYEPACS, {"data.then": ["eyepacs-subset"]}, ["then", "'eyepacs-subset'"]),
        (SYNTHETIC, {"data.parts": "eye"}, ["data.parts = 'eye'"]),
        (SYNTHETIC, {"data.validation": 0.0, "select": "best"}, ['select = "last"']),
        (SYNTHETIC, {"data.validation": 0.0, "evaluate_on": "validation"}, ["data.validation"]),
    ],
)
def test_a_mistake_is_named_before_any_run(benchmark, settings, named):
    with refuses(*named):
        plan(benchmark, ["naive"], [0], settings)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"data.patients": 2}, "validation part of 10%"),
        ({"data.patients": 1, "data.parts": "site"}, 'parts = "site"'),
        ({"data.patients": 9, "data.validation": 0.12}, "healthy and referable"),
    ],
)
def test_photographs_that_cannot_be_split_are_refused_before_any_is_drawn(
    settings, named, monkeypatch
):
    def drawn(*_):
        raise AssertionError("a photograph was drawn")

    monkeypatch.setattr("vcl_radial.data.fundus.synthetic.render", drawn)
    runs = plan(SYNTHETIC, ["radial-vcl"], [0], settings)
    with refuses(f"data.patients = {settings['data.patients']}: ", named):
        Retinopathy().check_data(runs, None)


def test_predictions_that_are_no_numbers_are_no_result(tmp_path, prepared, monkeypatch):
    monkeypatch.setattr(
        execute_module, "predict", lambda *_, **__: torch.full((1, len(prepared.data), 2), math.nan)
    )
    folder = RunFolder(tmp_path, run_of(epochs=1))
    with refuses("predictions on test", "learning_rate", kind=Diverged):
        execute(folder, [prepared])
    assert not folder.finished()
