"""A model of a table that learns further rows is the model of one run over all slices."""

import numpy as np
import pytest
from failing import data_fails, fails, refuses

import vcl_radial as vr
from vcl_radial.errors import UserError
from vcl_radial.models import format as files
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.kept import keep
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.regression.data import load_data
from vcl_radial.tracks.regression.models import kept
from vcl_radial.tracks.regression.splits import LaneSplits, slices
from vcl_radial.tracks.regression.track import Regression

TINY = {"steps": 10, "eval_samples": 4}
LANES = ("radial-vcl", "gaussian-vcl", "rdp-vcl", "bayes-linear")
ALONE = ("ewc", "replay", "laplace-kronecker", "badam", "mc-dropout")
OTHERS = sorted({*vr.list_methods(), *vr.list_methods("regression")} - {*LANES, *ALONE, "joint"})


def in_slices(method, count=2, seed=1):
    """The run of a method on slices of a table."""
    return plan("diabetes", [method], [seed], TINY | {"data.slices": count})[0]


def first_slice(run, out):
    """A run folder as if the benchmark ended after its first slice, and its training."""
    training = Regression().open(run, RunContext(out), lambda step: None)
    steps = training.steps()
    next(steps)
    folder = RunFolder(out, run)
    folder.start()
    keep(Regression(), folder, training, points=True)
    folder.finish({**training.files(), "environment.json": "{}"})
    return folder.path, training, steps


def rows_of(path, run, number):
    """The raw rows of a slice."""
    table = load_data(run.data)
    split = table.splits[run.seed]
    x = LaneSplits(table, [run.seed]).train.x[0]
    rows = split.train[slices(x, run.data.slices)[number]]
    np.savez(path, x=table.x[rows].numpy(), y=table.y[rows].numpy())
    return path


def check_truth(method, out):
    run = in_slices(method)
    parent, training, steps = first_slice(run, out / "first")
    model = vr.update(parent, rows_of(out / "new.npz", run, 1), out=out / "updates")
    next(steps)
    card, state = kept(training)
    (folder,) = (out / "updates").glob("*/*/seed-*")
    tensors = files.encode(state, card)[files.TENSORS]
    assert (folder / files.TENSORS).read_bytes() == tensors
    assert (folder / "scores.csv").read_text() == training.files()["scores.csv"]
    assert model.tasks == ["slice 1", "new"]


@pytest.mark.parametrize("method", [*LANES, *ALONE])
def test_a_slice_and_an_update_are_two_slices_in_one_run(method, tmp_path):
    check_truth(method, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_so_it_is_for_every_method_that_serves_numbers(method, tmp_path):
    try:
        in_slices(method).check()
        Regression().check_data([in_slices(method)], None)
    except UserError as error:
        pytest.skip(str(error))
    check_truth(method, tmp_path)


def finished(out, method, **settings):
    run = plan("diabetes", [method], [1], TINY | settings)[0]
    execute(Regression(), run, RunContext(out))
    return run, RunFolder(out, run).path


def test_an_exact_posterior_that_learns_rows_in_two_parts_is_that_of_all_rows(tmp_path):
    run = in_slices("bayes-linear")
    first, _, _ = first_slice(run, tmp_path / "first")
    model = vr.update(first, rows_of(tmp_path / "new.npz", run, 1), out=tmp_path)
    whole = vr.load(finished(tmp_path / "whole", "bayes-linear")[1])
    x = load_data(run.data).x[:5]
    assert np.allclose(model.predict(x).mean, whole.predict(x).mean)
    assert np.allclose(model.predict(x).spread, whole.predict(x).spread)


def test_all_rows_at_once_are_the_first_part_of_a_chain(tmp_path):
    run, folder = finished(tmp_path, "radial-vcl")
    np.savez(tmp_path / "new.npz", x=load_data(run.data).x[:40], y=load_data(run.data).y[:40])
    model = vr.update(folder, tmp_path / "new.npz", out=tmp_path / "updates")
    assert model.tasks == ["all rows", "new"]
    (scores,) = (tmp_path / "updates").glob("*/*/seed-*/scores.csv")
    lines = scores.read_text().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"1", "2"}
    before = (folder / "scores.csv").read_text().splitlines()[1:]
    assert lines[1 : len(before) + 1] == [line.replace("0,", "1,", 1) for line in before]


def test_what_cannot_be_learned_is_refused_in_one_line(tmp_path):
    run, folder = finished(tmp_path, "mc-dropout")
    data = tmp_path / "new.npz"
    np.savez(data, x=load_data(run.data).x[:40], y=load_data(run.data).y[:40])
    with refuses("mc-dropout", "data.slices=1"):
        vr.update(folder, data, out=tmp_path)
    _, folder = finished(tmp_path, "joint")
    with fails(folder, "joint"):
        vr.update(folder, data, out=tmp_path)
    _, folder = finished(tmp_path, "bayes-linear")
    for arrays in ({"x": np.zeros((4, 10))}, {"x": np.zeros((4, 9)), "y": np.zeros(4)}):
        np.savez(data, **arrays)
        with data_fails(data):
            vr.update(folder, data, out=tmp_path)
