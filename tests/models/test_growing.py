"""A model with one head for all tasks learns classes for which it has no output."""

import numpy as np
import pytest
import torch
from failing import data_fails
from tiny_runs import SINGLE_HEAD

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset
from vcl_radial.nn import BayesianLinear, kl_divergence
from vcl_radial.nn.convert import layer_settings
from vcl_radial.runs import kept, tracks
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.updating import planned
from vcl_radial.tracks.continual.execute import open_run
from vcl_radial.tracks.networks import posterior_of

GROWING = ("radial-vcl", "gaussian-vcl", "naive", "replay", "ewc", "laplace-kronecker")
OTHERS = (
    *("si", "mas", "l2", "laplace-diagonal", "ewc-separate", "vcl-ml-init", "low-rank-vcl"),
    *("radial-low-rank-vcl", "radial-vcl-restart", "radial-vcl-matched-noise"),
)
LETTERS = ("a", "b", "c")


def letters(path, names=LETTERS, pixels=0):
    """A task of classes that no digit has."""
    x = np.random.default_rng(pixels).integers(0, 17, (20 * len(names), 64)).astype(np.uint8)
    np.savez(path, x=x, y=np.array([*names] * 20))
    return path


def finished(finished_run, method):
    return finished_run(method, SINGLE_HEAD)


def opened(folder, data, out):
    """The parent's model, and the training of its update before the first step."""
    model, track = kept.load(folder), tracks.find("continual")
    run = planned(track, model, folder, data, None, {"batch_size": 8})
    return model, run, open_run(run, RunContext(out), lambda step: None)


def check_growth(method, finished_run, tmp_path):
    folder = finished(finished_run, method)
    model, _, training = opened(folder, letters(tmp_path / "new.npz"), tmp_path)
    grown, x = training.method, load_dataset("digits").test_x[:20]
    inputs, old = model.inputs(x), len(model.classes[0])
    outputs = grown.draws(inputs, samples=1, seed=3)
    assert outputs.shape[-1] == old + len(LETTERS)
    of_old = outputs[..., :old].log_softmax(-1)
    assert torch.equal(of_old, model.draws(x, 1, 3).log_softmax(-1))
    before, after = model.network.state_dict(), grown.network.state_dict()
    assert {key for key in after if key not in before} == {key for key in after if "grown" in key}
    for key, value in before.items():
        assert (
            after[key] == value if key.endswith("_extra_state") else torch.equal(after[key], value)
        )
    for _ in training.steps():
        pass
    rows = [row for row in training.rows if row[2] == "accuracy" and row[0] == len(model.tasks) + 1]
    assert [row[1] for row in rows] == [*range(1, len(model.tasks) + 2)]


@pytest.mark.parametrize("method", GROWING)
def test_new_outputs_change_no_prediction_and_no_posterior_of_the_old_ones(
    method, finished_run, tmp_path
):
    check_growth(method, finished_run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_so_it_is_for_every_method_that_grows(method, finished_run, tmp_path):
    check_growth(method, finished_run, tmp_path)


@pytest.mark.parametrize("method", ["radial-vcl", "gaussian-vcl"])
def test_the_divergence_of_new_outputs_is_that_of_a_fresh_layer(method, finished_run, tmp_path):
    """Their prior is the first one of the recipe, whatever the other outputs have learnt."""
    folder = finished(finished_run, method)
    model, run, training = opened(folder, letters(tmp_path / "new.npz"), tmp_path)
    network = training.method.network
    (layer,) = network.head.grown
    settings = layer_settings(posterior_of(run.recipe))
    fresh = BayesianLinear(layer.in_features, layer.out_features, posterior=settings)
    with torch.no_grad():  # the prior stays that of a fresh layer
        for parameter, of_layer in zip(fresh.parameters(), layer.parameters(), strict=True):
            parameter.copy_(of_layer)
    kl, of_fresh, grown, before = (
        float(kl_divergence(part, []).detach()) for part in (layer, fresh, network, model.network)
    )
    assert kl == of_fresh
    assert grown == pytest.approx(before + kl, rel=1e-6)


@pytest.mark.parametrize("method", ["radial-vcl", "laplace-kronecker"])
def test_a_model_that_has_grown_is_kept_and_grows_again(method, finished_run, tmp_path):
    folder = finished(finished_run, method)
    settings = {"settings": {"batch_size": 8}, "out": tmp_path / "out", "device": "cpu"}
    number = len(vr.load(folder).classes[0])
    first = vr.update(folder, letters(tmp_path / "one.npz"), **settings)
    assert first.classes[0][number:] == [*LETTERS]
    assert first.predict(load_dataset("digits").test_x[:3]).shape == (3, number + 3)
    (folder,) = (tmp_path / "out").glob("*/*/seed-*")
    data = letters(tmp_path / "two.npz", ("b", "d", "3"), pixels=1)
    second = vr.update(folder, data, **settings)
    assert second.card["tasks"][-1]["outputs"] == [3, number + 1, number + 3]
    assert second.classes[0][number:] == ["a", "b", "c", "d"]
    assert second.card["grown"] == [3, 1]


def test_methods_that_add_no_outputs_say_so(finished_run, tmp_path):
    folder, data = finished(finished_run, "bayes-linear"), letters(tmp_path / "new.npz")
    with data_fails(data, "bayes-linear", len(LETTERS)):
        vr.update(folder, data, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
