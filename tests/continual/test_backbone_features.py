"""Streams on features of a network that others trained, from the setting to the report."""

import csv

import numpy as np
import pytest
import torch
from failing import fails, refuses
from PIL import Image

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.data.backbones import LAYERS, PACKAGE, POOL, PRETRAINING, SIZE, weights_file
from vcl_radial.data.streams import build_stream, load_dataset
from vcl_radial.runs.planning import plan

NAME = "efficientnet-lite0"
SMALL = {"feature_size": 32, "feature_layers": [0, 2], "feature_pool": 1}
STREAM = {"kind": "split", "dataset": "digits", "tasks": 5, "heads": "single", "features": NAME}
RUN = [
    *("run", "split-digits-single-head", "--jobs", "1", "--set", f"stream.features={NAME}"),
    *("stream.feature_size=32", "stream.feature_layers=[0, 2]", "stream.feature_pool=1"),
]

installed = pytest.mark.skipif(weights_file() is None, reason=f"{PACKAGE} is not installed")


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "features"))


def planned(settings):
    (run,) = plan("split-digits-single-head", ["naive"], [0], settings)
    return run


def test_a_run_knows_its_layers_and_not_the_defaults_of_a_later_version():
    run = planned({"stream.features": NAME})
    stream = run.stream
    assert (stream.feature_size, stream.feature_pool) == (SIZE, POOL)
    assert stream.feature_layers == [*LAYERS]
    told = {f"stream.feature_{key}": v for key, v in (("size", SIZE), ("layers", [*LAYERS]))}
    assert planned({"stream.features": NAME} | told).digest() == run.digest()
    assert planned({"stream.features": NAME, "stream.feature_size": 96}).digest() != run.digest()


def test_a_run_on_images_has_the_digest_that_it_had_before_there_were_features():
    assert not {key for key in planned({}).stream.model_dump(exclude_none=True) if "feature" in key}


@pytest.mark.parametrize(
    ("key", "value"), [("size", 16), ("layers", [4, 2]), ("layers", [17]), ("pool", 99)]
)
def test_an_impossible_choice_is_named_before_images_are_read(key, value):
    with refuses(f"feature_{key}", str(value)):
        planned({"stream.features": NAME, f"stream.feature_{key}": value})


def test_choices_without_a_network_are_refused():
    with refuses("feature_size", NAME):
        planned({"stream.feature_size": 64})


def test_a_missing_package_is_one_line(monkeypatch):
    from vcl_radial.data import backbones

    monkeypatch.setattr(backbones, "find_spec", lambda name: None)
    with fails(NAME, "pip install"):
        build_stream(STREAM)


@installed
def test_the_stream_has_a_row_of_features_for_every_image():
    stream = build_stream(STREAM | SMALL)
    images = build_stream({key: value for key, value in STREAM.items() if key != "features"})
    assert list(stream.x.shape) == [1797, 16 + 24]
    assert stream.y.equal(images.y)
    assert [rows.tolist() for rows in stream.test] == [rows.tolist() for rows in images.test]
    training = stream.x[:1442]  # standardised by one mean and one deviation, as pixels are
    assert training.mean().item() == pytest.approx(0, abs=1e-5)
    assert training.std(correction=0).item() == pytest.approx(1, abs=1e-5)


@installed
def test_a_run_ends_with_a_report_that_names_weights_and_licence(tmp_path):
    options = ["options.features=inputs", "--method", "bayes-linear"]
    assert main([*RUN, *options, "--out", str(tmp_path)]) == 0
    report = tmp_path / "report" / "split-digits-single-head"
    with (report / "results.csv").open() as file:
        last = [r for r in csv.DictReader(file) if r["after"] == "5" and r["metric"] == "accuracy"]
    accuracy = sum(float(row["value"]) for row in last) / len(last)
    assert accuracy > 70  # the exact posterior of 40 features; chance is 10
    assert PRETRAINING[NAME] in (tmp_path / "report" / "split-digits-single-head.html").read_text()


@installed
def test_other_data_pass_through_the_same_network(tmp_path):
    """Without that, 28x28 pixels would be refused as inputs of another size."""
    arguments = ["stream.ood=glyphs", "epochs=1", "hidden=[8]", "--method", "naive"]
    assert main([*RUN, *arguments, "--out", str(tmp_path)]) == 0
    assert "ood_auc" in next(tmp_path.rglob("results.csv")).read_text()


@installed
def test_a_kept_model_predicts_images_as_their_features(tmp_path, capsys):
    options = ["options.features=inputs", "--method", "bayes-linear", "--seeds", "2"]
    assert main([*RUN, *options, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "split-digits-single-head" / "bayes-linear"
    stream, digits = build_stream(STREAM | SMALL), load_dataset("digits")
    models = [vr.load(path) for path in sorted(folder.iterdir())]
    m, s = stream.scaling
    rows = stream.x[len(digits.train_y) :] * s + m
    for model in (*models, vr.load(folder)):
        of_images, of_rows = model.predict(digits.test_x), model.predict(rows)
        assert of_images.shape == (355, 10)
        torch.testing.assert_close(of_images, of_rows, rtol=1e-3, atol=1e-4)
    table = tmp_path / "predictions.csv"
    assert main(["predict", str(folder), "digits", "--to", str(table), "--scores"]) == 0
    with table.open() as file:
        predicted = [int(row["class"]) for row in csv.DictReader(file)]
    assert predicted == of_images.argmax(1).tolist()
    assert "accuracy" in capsys.readouterr().out


@installed
def test_image_files_are_stretched_to_the_size_of_the_network(tmp_path):
    for number in range(12):
        path = tmp_path / "images" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        grey = np.full((20, 24), 40 + 150 * (number % 2) + number, np.uint8)
        Image.fromarray(grey).save(path)
    out = ["--out", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "images")]
    settings = ["batch_size=2", "network=mlp", "options.features=inputs", "stream.image_size=16"]
    arguments = [*RUN[2:], *settings, "stream.validation=0", "--method", "bayes-linear"]
    assert main(["run", "image-folder-single-head", *arguments, *out]) == 0
    folder = next((tmp_path / "runs").rglob("model.json")).parent
    table = tmp_path / "predictions.csv"
    assert main(["predict", str(folder), str(tmp_path / "images"), "--to", str(table)]) == 0
    with table.open() as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 12
    assert all(row["class"] == row["input"][0] for row in rows)
