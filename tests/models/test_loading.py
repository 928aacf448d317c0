"""What loading a model needs, imports and refuses, and what its draws depend on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from failing import data_fails, fails
from tiny_runs import SINGLE_HEAD

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset
from vcl_radial.errors import VclRadialError
from vcl_radial.models import format as files

X = load_dataset("digits").test_x[:12]


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_draws_depend_on_the_seed_alone(finished_run):
    model = vr.load(finished_run())
    draws = model.draws(X, 3, seed=1, task=2)
    assert torch.equal(draws, model.draws(X, 3, seed=1, task=2))
    assert torch.equal(draws[:2], model.draws(X, 2, seed=1, task=2))
    assert torch.equal(draws[:, 4:7], model.draws(X[4:7], 3, seed=1, task=2))
    assert not torch.equal(draws, model.draws(X, 3, seed=2, task=2))
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    model.draws(X, 3, seed=1, task=2)
    assert torch.equal(torch.rand(1), expected)


def test_the_prediction_is_the_mean_over_draws(finished_run):
    # Draws of the weights, and draws of a first layer's outputs, have one distribution for a point.
    model = vr.load(finished_run(eval_samples=5_000))
    mean = model.draws(X, task=0).softmax(-1).mean(0)
    assert torch.allclose(model.predict(X, 0), mean, atol=1e-3)
    assert torch.equal(model.predict(X, 0), model.predict(X, model.tasks[0]))


def test_the_entropy_is_that_of_the_prediction(finished_run):
    model = vr.load(finished_run())
    probs = model.predict(X, 3)
    entropy, mutual, expected = model.uncertainty(X, 3)
    assert torch.allclose(entropy, torch.special.entr(probs).sum(1), atol=1e-6)
    assert torch.allclose(entropy, mutual + expected, atol=1e-6)


def test_the_inferred_task_has_the_head_of_the_least_entropy(finished_run):
    model = vr.load(finished_run())
    entropies = torch.stack([model.uncertainty(X, task).entropy for task in range(5)])
    assert torch.equal(model.infer(X), entropies.argmin(0))
    chosen = model.infer(X)
    for row, probs in enumerate(model.predict(X)):
        assert torch.equal(probs, model.predict(X, int(chosen[row]))[row])


def test_log_prob_is_of_the_label_and_wrong_labels_are_refused(finished_run):
    model = vr.load(finished_run(benchmark=SINGLE_HEAD))
    y = load_dataset("digits").test_y[:12]
    assert torch.allclose(model.log_prob(X, y).exp(), model.predict(X)[range(12), y])
    for wrong in (y[:5], y.double(), y + 10):
        with data_fails("y"):
            model.log_prob(X, wrong)


def test_predictions_do_not_depend_on_the_number_of_inputs(finished_run, monkeypatch):
    model = vr.load(finished_run())
    whole = model.predict(X, 0)
    monkeypatch.setattr("vcl_radial.models.model.BATCH", 5)
    assert torch.allclose(model.predict(X, 0), whole, atol=1e-6)


@pytest.mark.parametrize("method", ["radial-vcl", "laplace-kronecker", "bayes-linear"])
def test_a_model_moves_to_a_device_and_back(method, finished_run):
    model = vr.load(finished_run(method))
    before = model.predict(X)
    assert torch.equal(model.to("cpu").predict(X), before)
    if torch.cuda.is_available():
        assert torch.allclose(model.to("cuda").predict(X).cpu(), before, atol=1e-4)


LOADS = """
import sys
import vcl_radial as vr
model = vr.load(sys.argv[1])
model.predict([[0.0] * 64], 0)
assert not {"avalanche", "sklearn", "torchvision", "matplotlib"} & set(sys.modules)
"""


@pytest.mark.processes
def test_loading_and_predicting_imports_neither_avalanche_nor_data_sets(finished_run):
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    answer = subprocess.run(
        [sys.executable, "-c", LOADS, str(finished_run())],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


OWN = """
from pathlib import Path
from vcl_radial.methods.vcl import VCL
Path({marker!r}).touch()
class Mine(VCL):
    pass
"""


def test_a_users_own_class_is_imported_with_consent_alone(finished_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    marker = tmp_path / "imported"
    Path("own_kept.py").write_text(OWN.format(marker=str(marker)))
    folder = finished_run(strategy="own_kept:Mine")
    sys.modules.pop("own_kept")
    marker.unlink()
    with pytest.raises(VclRadialError, match="trust=True") as caught:
        vr.load(folder)
    assert str(folder / files.CARD) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not marker.exists()
    assert type(vr.load(folder, trust=True).method).__name__ == "Mine"
    assert marker.exists()
    sys.modules.pop("own_kept")


def test_what_a_card_names_is_never_imported(finished_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("hostile.py").write_text("raise SystemExit('imported')")
    path = copied(finished_run(), tmp_path)
    card, state = files.decode(path)
    for key, value in (
        ("strategy", "hostile:X"),
        ("network", "hostile:X"),
        ("posterior", "hostile:X"),
    ):
        recipe = card["spec"]["recipe"] | {key: value}
        changed = {k: v for k, v in card.items() if k not in ("format", "checksum")}
        for name, content in files.encode(
            state, changed | {"spec": card["spec"] | {"recipe": recipe}}
        ).items():
            (path / name).write_bytes(content)
        with pytest.raises(VclRadialError) as caught:
            vr.load(path)
        assert str(path) in str(caught.value)
        assert "hostile" not in sys.modules


def test_truncated_and_exchanged_files_are_refused(finished_run, tmp_path):
    path = copied(finished_run("naive"), tmp_path)
    card, tensors = path / files.CARD, path / files.TENSORS
    text, whole = card.read_text(), tensors.read_bytes()
    for end in (0, 1, len(text) // 2, len(text) - 2):
        card.write_text(text[:end])
        with data_fails(card):
            vr.load(path)
    card.write_text(text)
    for end in (0, 7, 100, len(whole) - 1):
        tensors.write_bytes(whole[:end])
        with data_fails(tensors):
            vr.load(path)
    tensors.write_bytes((finished_run("ewc") / files.TENSORS).read_bytes())
    with data_fails(tensors):
        vr.load(path)


@pytest.mark.parametrize("card", [{}, {"format": "1"}, {"format": 1}, {"format": 1, "state": 3}])
def test_a_card_without_its_parts_is_refused(card, finished_run, tmp_path):
    path = copied(finished_run("naive"), tmp_path)
    card["card_checksum"] = files._checksum_of(card)
    (path / files.CARD).write_text(json.dumps(card))
    with pytest.raises(VclRadialError) as caught:
        vr.load(path)
    assert str(path) in str(caught.value)


def test_a_state_that_does_not_fit_its_spec_is_refused(finished_run, tmp_path):
    path = copied(finished_run("naive"), tmp_path)
    card, _ = files.decode(path)
    _, other = files.decode(finished_run("ewc"))
    about = {key: value for key, value in card.items() if key not in ("format", "checksum")}
    for name, content in files.encode(other, about).items():
        (path / name).write_bytes(content)
    with pytest.raises(VclRadialError):
        vr.load(path)


def test_a_folder_that_is_not_there_and_a_file_are_refused(tmp_path):
    for path in (tmp_path / "nowhere", Path(__file__)):
        with fails(path):
            vr.load(path)
