"""A finished run is a model: what it predicts, its files, and what is refused."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from failing import data_fails, fails
from safetensors.torch import load_file
from tiny_runs import MULTI_HEAD, SINGLE_HEAD, carried_out, tiny_run

import vcl_radial as vr
from vcl_radial.data.streams import load_dataset
from vcl_radial.methods.carried import tensor_digest
from vcl_radial.models import format as files
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.continual.track import Continual

METHODS = ("radial-vcl", "gaussian-vcl", "ewc", "laplace-kronecker", "replay", "bayes-linear")


def kept(tmp_path, method="radial-vcl", benchmark=MULTI_HEAD, **settings):
    run = tiny_run(method, benchmark, **settings)
    carried_out(run, tmp_path)
    return RunFolder(tmp_path, run).path


@pytest.mark.parametrize("benchmark", [MULTI_HEAD, SINGLE_HEAD])
@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_model_predicts_what_the_run_predicted(method, benchmark, tmp_path):
    run = tiny_run(method, benchmark)
    training = Continual().open(run, RunContext(tmp_path), lambda step: None)
    for _ in training.steps():
        pass
    execute(Continual(), run, RunContext(tmp_path))
    model = vr.load(RunFolder(tmp_path, run).path)
    stream, images = training.stream, load_dataset("digits")
    raw = torch.cat([images.train_x, images.test_x])
    for task in range(stream.n_tasks):
        x, label = stream.inputs(task, "test"), stream.task_label(task)
        expected = training.method.predict(x, label, number=task).exp()
        assert torch.equal(model.predict(raw[stream.rows(task, "test")], task), expected)


def test_the_files_are_those_of_the_card_and_equal_tensors_are_stored_once(tmp_path):
    state = {"a": torch.arange(3.0), "b": [{1: torch.arange(3.0)}, (None, 2.5)]}
    for name, content in files.encode(state, {"x": 1}).items():
        (tmp_path / name).write_bytes(content)
    card, back = files.decode(tmp_path)
    assert card["x"] == 1
    assert back["b"][1] == (None, 2.5)
    assert torch.equal(back["a"], back["b"][0][1])
    assert back["a"].data_ptr() != back["b"][0][1].data_ptr()
    assert (tmp_path / files.TENSORS).stat().st_size < 200


def test_a_symmetric_matrix_takes_half_the_bytes_and_keeps_every_bit(tmp_path):
    root = torch.randn(50, 50).double()
    symmetric = root @ root.T
    symmetric = symmetric.tril() + symmetric.tril(-1).T
    asymmetric = symmetric.clone()
    asymmetric[3, 4], asymmetric[4, 3] = 0.0, -0.0
    state = {"P": symmetric, "again": [symmetric], "root": root, "almost": asymmetric}
    state |= {"one": torch.ones(1, 1), "half": symmetric.bfloat16()}
    for name, content in files.encode(state, {}).items():
        (tmp_path / name).write_bytes(content)
    _, restored = files.decode(tmp_path)
    restored["again"] = restored["again"][0]
    for name, tensor in (state | {"again": symmetric}).items():
        assert tensor_digest(restored[name]) == tensor_digest(tensor)
    stored = load_file(tmp_path / files.TENSORS)
    sizes = {name: tensor.numel() for name, tensor in stored.items()}
    assert sizes == {"P": 1275, "root": 2500, "almost": 2500, "one": 1, "half": 1275}


def test_an_exact_head_is_kept_as_a_triangle_and_older_files_are_read(tmp_path, monkeypatch):
    path = kept(tmp_path, "bayes-linear", SINGLE_HEAD, **{"options.units": 30})
    x = load_dataset("digits").test_x[:20]
    probs = vr.load(path).predict(x)
    (precision,) = (
        tensor for name, tensor in load_file(path / files.TENSORS).items() if "precision" in name
    )
    assert precision.shape == (31 * 32 // 2,)
    card, state = files.decode(path)
    about = {key: value for key, value in card.items() if key not in ("format", "checksum")}
    monkeypatch.setattr(files, "VERSION", 1)
    monkeypatch.setattr(files, "_is_symmetric", lambda matrix: False)
    for name, content in files.encode(state, about).items():
        (path / name).write_bytes(content)
    monkeypatch.undo()
    assert json.loads((path / files.CARD).read_text())["format"] == 1
    assert torch.equal(vr.load(path).predict(x), probs)


def test_uncertainty_adds_up_and_probabilities_sum_to_one(tmp_path):
    model = vr.load(kept(tmp_path))
    x = load_dataset("digits").test_x[:20]
    entropy, mutual, expected = model.uncertainty(x, 1)
    assert torch.allclose(entropy, mutual + expected, atol=1e-6)
    assert torch.allclose(model.predict(x).sum(1), torch.ones(20))
    assert torch.equal(model.predict(x.flatten(1).double().numpy(), 1), model.predict(x, 1))
    assert model.classes[1] == ["2", "3"]
    y = torch.zeros(20, dtype=torch.int64)
    assert torch.equal(model.log_prob(x, y, 1), model.predict(x, 1)[:, 0].log())
    assert model.draws(x, 3, 7, 1).shape == (3, 20, 2)
    assert all((layer.scale > 0).all() for layer in model.posterior.values())


def test_without_a_task_each_input_has_the_uncertainty_of_its_inferred_task(tmp_path):
    model = vr.load(kept(tmp_path))
    x = load_dataset("digits").test_x[:20]
    tasks = model.infer(x)
    for part, inferred in enumerate(model.uncertainty(x)):
        for row, task in enumerate(tasks.tolist()):
            assert inferred[row] == model.uncertainty(x, task)[part][row]
    with fails("task", len(model.tasks) - 1):
        model.draws(x)


def test_one_head_needs_no_task(tmp_path):
    model = vr.load(kept(tmp_path, benchmark=SINGLE_HEAD))
    x = load_dataset("digits").test_x[:20]
    assert torch.equal(model.draws(x), model.draws(x, task=0))


def test_a_read_only_folder_that_was_moved_loads(tmp_path):
    path = shutil.copytree(kept(tmp_path / "out", "naive"), tmp_path / "moved")
    shutil.rmtree(tmp_path / "out")
    for file in (*path.iterdir(), path):
        file.chmod(0o555)
    assert vr.load(path).tasks
    path.chmod(0o755)


def test_foreign_tensors_and_a_card_that_is_none_are_refused(tmp_path):
    path = kept(tmp_path, "naive")
    (path / files.TENSORS).write_bytes(b"PK")
    with data_fails(path / files.TENSORS):
        vr.load(path)
    (path / files.TENSORS).unlink()
    with data_fails(path / files.TENSORS):
        vr.load(path)
    (path / files.CARD).write_text("[]")
    with data_fails(path / files.CARD):
        vr.load(path)


def test_wrong_inputs_and_tasks_are_refused(tmp_path):
    model = vr.load(kept(tmp_path, "naive"))
    with data_fails("x", "[N, 64]"):
        model.predict(torch.zeros(2, 63), 0)
    with fails("task", 9):
        model.predict(torch.zeros(2, 64), 9)


def test_damaged_newer_and_missing_models_are_refused(tmp_path):
    path = shutil.copytree(kept(tmp_path / "out", "naive"), tmp_path / "moved")
    card, tensors = path / files.CARD, path / files.TENSORS
    whole = tensors.read_bytes()
    tensors.write_bytes(whole[:-1])
    with data_fails(tensors):
        vr.load(path)
    tensors.write_bytes(whole)
    text = card.read_text()
    card.write_text(text.replace('"multi_head": true', '"multi_head": false'))
    with data_fails(card):
        vr.load(path)
    card.write_text(json.dumps(json.loads(text) | {"format": files.VERSION + 1}))
    with data_fails(card, files.VERSION + 1):
        vr.load(path)
    card.unlink()
    with fails(path, "--no-model"):
        vr.load(path)


def test_a_run_without_a_model_is_finished_all_the_same(tmp_path):
    run = tiny_run()
    execute(Continual(), run, RunContext(tmp_path, keep_model=False))
    assert RunFolder(tmp_path, run).finished()
    assert not (RunFolder(tmp_path, run).path / files.CARD).exists()


@pytest.mark.parametrize("method", ["replay", "vcl-coreset-random"])
def test_a_model_without_the_stored_points_predicts_as_with_them_and_learns_no_more(
    method, tmp_path
):
    run = tiny_run(method)
    models = {}
    for points in (True, False):
        out = tmp_path / str(points)
        execute(Continual(), run, RunContext(out, keep_points=points))
        models[points] = vr.load(RunFolder(out, run).path)
    x = load_dataset("digits").test_x[:30]
    assert torch.equal(models[True].predict(x, 0), models[False].predict(x, 0))
    assert models[True].card["training_points"] > models[False].card["training_points"] == 0
    folder = RunFolder(tmp_path / "False", run).path
    with fails(folder, "--no-buffer"):
        vr.update(folder, "none.npz", out=tmp_path / "updated")


def test_standardised_inputs_are_noticed(tmp_path):
    """A model standardises inputs itself; the pixels of the digits are never negative."""
    model = vr.load(kept(tmp_path))
    x = load_dataset("digits").test_x[:5].float()
    model.predict(x, 0)
    with pytest.warns(UserWarning, match="raw inputs"):
        model.predict((x - x.mean()) / x.std(), 0)


def test_impossible_arguments_are_one_line(tmp_path):
    model = vr.load(kept(tmp_path))
    x = load_dataset("digits").test_x[:5]
    assert model.predict(x, np.int64(1)).equal(model.predict(x, 1))
    for samples in (0, -1, 2.5):
        with fails("samples"):
            model.draws(x, samples, task=0)
    with fails("seed"):
        model.draws(x, 2, "a", 0)
    with fails("task"):
        model.predict(x, True)
    for y in ("abc", None, [1.5] * 5, [1j] * 5):
        with data_fails("y"):
            model.log_prob(x, y, 0)


def odd_kinds(x):
    """Arrays of the same whole numbers `[N, D]` in kinds that PyTorch does not take as they are."""
    return {
        "negative strides": x[::-1].copy()[::-1],
        "big-endian": x.astype(">f4"),
        "float16": x.astype(np.float16),
        "long double": x.astype(np.longdouble),
        "unsigned": x.astype(np.uint16),
        "objects": x.astype(object),
        "list": x.tolist(),
        "list of tensors": [torch.tensor(row) for row in x],
        "data frame": pd.DataFrame(x),
        "data frame of several types": pd.DataFrame(x).astype({0: "Int64", 1: float}),
        "read-only": np.broadcast_to(x, x.shape),
        "sparse": torch.tensor(x).to_sparse(),
        "with a gradient": torch.tensor(x, dtype=torch.float32, requires_grad=True),
    }


def no_numbers(x):
    """What is no array of real numbers, or has gaps."""
    return (
        *(x.astype(complex), x.astype(str), x.astype("datetime64[s]"), "text", None, {}),
        *([[1], [1, 2]], np.ma.masked_array(x, mask=x > 3), torch.zeros(x.shape, device="meta")),
        pd.DataFrame(x).astype("Int64").mask(x > 3),
    )


@pytest.mark.filterwarnings("error")
def test_numbers_of_every_kind_are_inputs_and_all_else_is_one_line(finished_run):
    model = vr.load(finished_run())
    x = load_dataset("digits").test_x[:6].flatten(1).numpy()
    expected = model.predict(x, 0)
    for kind, values in odd_kinds(x).items():
        assert torch.equal(model.predict(values, 0), expected), kind
    assert torch.equal(model.predict(x > 3, 0), model.predict((x > 3).astype(float), 0))
    for y in (np.array([0, 1] * 3, ">i2"), np.array([1, 0] * 3)[::-1], pd.Series([0, 1] * 3)):
        assert torch.equal(model.log_prob(x, y, 0), model.log_prob(x, [0, 1] * 3, 0))
    for values in no_numbers(x):
        with data_fails("x", "real numbers"):
            model.predict(values, 0)


@pytest.mark.parametrize("value", [1e10, 1e30, 1e39])
def test_inputs_that_are_too_large_are_the_cause_that_an_error_names(value, finished_run, tmp_path):
    """Each gave another error: no predictions, infinite inputs, diverged weights, Cholesky."""
    folder = finished_run("bayes-linear")
    x = np.zeros((40, 64))
    x[::2] = value
    with data_fails("x", "too large"):
        vr.load(folder).predict(x, 0)
    np.savez(tmp_path / "new.npz", x=x.astype(np.float32) if value < 1e38 else x, y=[0, 1] * 20)
    if value < 1e38:
        with data_fails(tmp_path / "new.npz", "too large"):
            vr.update(folder, tmp_path / "new.npz", out=tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("device", ["foo", "cuda:99", "meta", None, 99])
def test_a_device_that_is_not_there_is_named_in_one_line(device, finished_run):
    model = vr.load(finished_run())
    with fails("device", device, "cpu"):
        model.to(device)
    assert model.to("cpu").predict(torch.zeros(1, 64), 0).isfinite().all()
