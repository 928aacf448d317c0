"""An exported model gives the probabilities of ours, from raw inputs, in any number."""

import json
import sys

import numpy as np
import pytest
import torch
from failing import fails, refuses
from tiny_runs import SINGLE_HEAD

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset
from vcl_radial.models.ensemble import Ensemble
from vcl_radial.models.export import export
from vcl_radial.nn.weights import at_means

X = load_dataset("digits").test_x[:9].float()


def run_pt2(path, x):
    names = {"classes.json": ""}
    program = torch.export.load(path, extra_files=names).module()
    return program(x).detach(), json.loads(names["classes.json"])


def run_onnx(path, x):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (probs,) = session.run(["probabilities"], {"x": x.numpy()})
    metadata = session.get_modelmeta().custom_metadata_map
    return torch.from_numpy(probs), json.loads(metadata["classes"])


@pytest.fixture(params=["pt2", "onnx"])
def exported(request, tmp_path):
    """Export a model, and return a function of inputs and the names of the classes."""
    if request.param == "onnx":
        pytest.importorskip("onnxscript")

    def make(model, **options):
        path = tmp_path / f"model.{request.param}"
        export(model, path, **options)
        run = run_onnx if request.param == "onnx" else run_pt2
        assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [path.name]
        shape = model.card["input"]["shape"]
        return lambda x: run(path, x.reshape(len(x), *shape))

    return make


def test_draws_are_those_of_the_model(exported, finished_run):
    model = vr.load(finished_run())
    program = exported(model, task=2, draws=3)
    for x in (X, X[:1]):
        probs, classes = program(x)
        assert classes == model.classes[2]
        assert torch.allclose(probs, model.draws(x, 3, task=2).softmax(-1), atol=1e-5)


def test_the_mean_network_predicts_at_the_means(exported, finished_run):
    model = vr.load(finished_run(benchmark=SINGLE_HEAD))
    probs, classes = exported(model)(X)
    (prepared,) = model._batches(X)
    with at_means(model.network):
        expected = model.network(prepared).softmax(-1)
    assert classes == model.classes[0]
    assert torch.allclose(probs, expected, atol=1e-5)


SMALL = {
    "bayes-linear": {"options.units": 20},
    "bayes-discriminant": {"options.units": 20},
    "bayes-linear-patches": {"options.units": 20, "options.filters": 5, "options.patch": 3},
    "bayes-linear-tangent": {"options.directions": 9},
    "swag": {"options.collect_every": 1, "options.collect_from": 0.0},
    "sgld": {"options.collect_every": 1, "options.collect_from": 0.0},
}
"""Settings with which exact heads have few features, and few steps leave iterates."""


def model_of(finished_run, method, **settings):
    return vr.load(finished_run(method, **SMALL.get(method, {}), **settings))


EXACT = [
    "bayes-linear",
    pytest.param("bayes-discriminant", marks=pytest.mark.slow),
    pytest.param("bayes-linear-patches", marks=pytest.mark.slow),
    pytest.param("bayes-linear-tangent", marks=pytest.mark.slow),
    pytest.param("bayes-linear-first-body", marks=pytest.mark.slow),
    pytest.param("learning-body", marks=pytest.mark.slow),
]
SAMPLED = [
    "mc-dropout",
    pytest.param("swag", marks=pytest.mark.slow),
    pytest.param("sgld", marks=pytest.mark.slow),
    pytest.param("deep-ensemble", marks=pytest.mark.slow),
    pytest.param("radial-ensemble", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("method", ["ewc", "laplace-kronecker", *EXACT])
def test_without_draws_of_weights_it_predicts_as_the_model(method, exported, finished_run):
    model = model_of(finished_run, method)
    before = model.predict(X, 4)
    program = exported(model, task=model.tasks[4])
    for x in (X, X[:1]):
        assert torch.allclose(program(x)[0], model.predict(x, 4).float(), atol=1e-5)
    assert torch.equal(model.predict(X, 4), before)


@pytest.mark.parametrize("method", SAMPLED)
def test_draws_of_any_kind_are_those_of_the_model(method, exported, finished_run):
    model = model_of(finished_run, method)
    probs, _ = exported(model, task=2, draws=3)(X)
    expected = model.draws(X, 3, task=2).softmax(-1)
    assert torch.allclose(probs, expected, atol=1e-5)
    assert not torch.equal(expected[0], expected[1])


def test_the_mean_of_dropout_has_no_masks(exported, finished_run):
    model = vr.load(finished_run("mc-dropout"))
    probs, _ = exported(model, task=2)(X)
    body = model.network(model.inputs(X), 2)  # masks of rows
    assert not torch.allclose(probs, body.softmax(-1), atol=1e-5)
    for module in model.network.modules():
        module._forward_pre_hooks.clear()
    assert torch.allclose(probs, model.network(model.inputs(X), 2).softmax(-1), atol=1e-5)


def test_a_model_is_unchanged_by_its_export(finished_run, tmp_path):
    model = vr.load(finished_run())
    before, state = model.predict(X), {k: str(v) for k, v in model.network.state_dict().items()}
    export(model, tmp_path / "model.pt2", task=0, draws=2)
    assert torch.equal(model.predict(X), before)
    assert {k: str(v) for k, v in model.network.state_dict().items()} == state


def test_what_cannot_be_exported_is_one_line(finished_run, tmp_path):
    model, to = vr.load(finished_run()), tmp_path / "model.pt2"
    with fails(tmp_path / "model.pt", ".pt2"):
        export(model, tmp_path / "model.pt", task=0)
    with fails("task"):
        export(model, to)
    with fails("task"):
        export(model, to, task=5)
    with refuses("seed"):
        export(Ensemble([model, model]), to, task=0)
    draws = model.method.draws
    for factor in (lambda x: float(x.max()), len):  # numbers that a program cannot hold
        model.method.draws = lambda x, *label, factor=factor, **of: (
            draws(x, *label, **of) * factor(x)
        )
        with refuses("predict"):
            export(model, to, task=0, draws=2)
    model = vr.load(finished_run("laplace-linearised"))  # its draws are derivatives
    with refuses("predict"):
        export(model, to, task=0, draws=2)
    assert not to.exists()


@pytest.mark.slow
def test_a_convolutional_network_is_exported(exported, finished_run):
    model = vr.load(finished_run("radial-vcl", network="convnet"))
    program = exported(model, task=2, draws=2)
    for x in (X, X[:1]):
        assert torch.allclose(program(x)[0], model.draws(x, 2, task=2).softmax(-1), atol=1e-5)


def test_what_onnx_lacks_is_one_line(finished_run, tmp_path, monkeypatch):
    pytest.importorskip("onnxscript")

    def lacking(*args, **kwargs):
        raise torch.onnx.OnnxExporterError("no such operation")

    monkeypatch.setattr(torch.onnx, "export", lacking)
    with refuses(".pt2"):
        export(vr.load(finished_run()), tmp_path / "model.onnx", task=0)


@pytest.mark.slow
def test_tangent_features_of_convolutions_are_refused(finished_run, tmp_path):
    settings = {"network": "convnet", "options.directions": 5}
    model = vr.load(finished_run("bayes-linear-tangent", **settings))
    with refuses("predict"):
        export(model, tmp_path / "model.pt2", task=0)


def test_an_onnx_file_without_onnx_is_one_line(finished_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refuses("vcl-radial[export]"):
        export(vr.load(finished_run()), tmp_path / "model.onnx", task=0)


def test_the_command_exports_a_task_by_number_or_name(finished_run, command):
    model = vr.load(finished_run())
    for task in ("1", model.tasks[1]):
        arguments = ("export", str(finished_run()), "--to", f"{task}.pt2", "--task", task)
        code, out, err = command(*arguments)
        assert (code, err) == (0, [])
        assert out.startswith(f"{task}.pt2: ")
        probs, _ = run_pt2(f"{task}.pt2", X.flatten(1))
        assert probs.shape == (9, 2)
        assert np.allclose(probs.sum(1), 1)
