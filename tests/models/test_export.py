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
        return lambda x: run(path, x.flatten(1))

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


@pytest.mark.parametrize("method", ["ewc", "laplace-kronecker"])
def test_point_estimates_predict_as_the_model(method, exported, finished_run):
    model = vr.load(finished_run(method))
    probs, _ = exported(model, task=model.tasks[4])(X)
    assert torch.allclose(probs, model.predict(X, 4), atol=1e-5)
    before = model.predict(X)
    assert torch.equal(model.predict(X), before)


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
    for method in ("bayes-linear", "mc-dropout"):
        with refuses("predict"):
            export(vr.load(finished_run(method)), to, task=0)
    assert not to.exists()


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
