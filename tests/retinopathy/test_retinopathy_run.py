"""A run: left and taken up again, kept when finished, and never half a lie."""

import json
import math
import tomllib

import pandas as pd
import pytest
import retinopathy_helpers
import torch
from retinopathy_helpers import Stop, execute, run_of

from vcl_radial.errors import Diverged, UserError
from vcl_radial.runs import catalogue
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy import execute as execute_module
from vcl_radial.tracks.retinopathy.settings import TABLES, Run
from vcl_radial.tracks.retinopathy.track import Retinopathy

ENSEMBLE = {"strategy": "deep_ensemble", "options": {"members": 2}}
SYNTHETIC, EYEPACS = "retinopathy-synthetic", "retinopathy-eyepacs"


def content(folder):
    found = {name: (folder.path / f"{name}.csv").read_text() for name in TABLES}
    history = pd.read_csv(folder.path / "history.csv").drop(columns="seconds")
    return {**found, "history": history.to_csv()}


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
    with pytest.raises(UserError, match="batch_size = 8: a step does not fit into memory; choose"):
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
    with pytest.raises(UserError, match=r"mine.toml: unknown key 'date'; .* 'data'"):
        plan(str(path), ["radial-vcl"], [0], {})


MISTAKES = [
    (
        (SYNTHETIC, ["radial-vcl"], {"data.sizes": 3}),
        "unknown key 'data.sizes'; .*'data.size'",
    ),
    (
        (SYNTHETIC, ["radial-vcl"], {"truncation": 1.0}),
        'truncation needs posterior = "gaussian"',
    ),
    (
        (SYNTHETIC, ["radial-vcl"], {"data.dataset": "cats"}),
        "data.dataset = 'cats': .*choose from",
    ),
    (
        (EYEPACS, ["radial-vcl"], {"data.shifted": ["eyepacs-subset"]}),
        "which is trained on",
    ),
    (
        ("retinopathy-hospitals", ["naive"], {"data.shifted": ["idrid"]}),
        "which is trained on",
    ),
    (
        ("retinopathy-odir", ["naive"], {"data.dataset": "odir-other"}),
        "'odir-other' has no grades to train on: it may be named by shifted alone",
    ),
    (
        ("retinopathy-aptos", ["naive"], {"data.then": ["folder-other"]}),
        "'folder-other' has no grades to train on",
    ),
    (
        (EYEPACS, ["radial-vcl"], {"data.shifted": ["kaggle-eyepacs"]}),
        "is a part of kaggle-eyepacs",
    ),
    (
        (EYEPACS, ["radial-vcl"], {"data.then": ["eyepacs-subset"]}),
        "which is the dataset",
    ),
    ((SYNTHETIC, ["radial-vcl"], {"data.parts": "eye"}), "data.parts = 'eye'"),
    (
        (SYNTHETIC, ["radial-vcl"], {"data.validation": 0.0, "select": "best"}),
        'set select = "last"',
    ),
    (
        (
            SYNTHETIC,
            ["radial-vcl"],
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


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"data.patients": 2}, "2 patients are too few for a validation part of 10%"),
        ({"data.patients": 1, "data.parts": "site"}, 'parts = "site" needs several'),
        ({"data.patients": 9, "data.validation": 0.12}, "does not hold both healthy and referable"),
    ],
)
def test_photographs_that_cannot_be_split_are_refused_before_any_is_drawn(
    settings, fault, monkeypatch
):
    def drawn(*_):
        raise AssertionError("a photograph was drawn")

    monkeypatch.setattr("vcl_radial.data.fundus.synthetic.render", drawn)
    runs = plan(SYNTHETIC, ["radial-vcl"], [0], settings)
    with pytest.raises(UserError, match=rf"^data\.patients = \d: .*{fault}"):
        Retinopathy().check_data(runs, None)


def test_predictions_that_are_no_numbers_are_no_result(tmp_path, prepared, monkeypatch):
    monkeypatch.setattr(
        execute_module, "predict", lambda *_, **__: torch.full((1, len(prepared.data), 2), math.nan)
    )
    folder = RunFolder(tmp_path, run_of(epochs=1))
    with pytest.raises(Diverged, match="predictions on test are not numbers"):
        execute(folder, [prepared])
    assert not folder.finished()
