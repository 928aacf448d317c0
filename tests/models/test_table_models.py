"""A finished run on a table is a model: mean and spread of the target from raw inputs."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from failing import data_fails, fails
from torch.distributions import Normal

import vcl_radial as vr
from vcl_radial.cli import main
from vcl_radial.errors import DataError
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.reporting.model_card import card_text
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.regression.data import load_data
from vcl_radial.tracks.regression.splits import LaneSplits
from vcl_radial.tracks.regression.track import Regression

TINY = {"steps": 20, "eval_samples": 10}
LANES = ("radial-vcl", "gaussian-vcl", "rdp-vcl", "bayes-linear", "deep-ensemble", "mc-dropout")


def finished(out, method="radial-vcl", benchmark="diabetes", seed=1, **settings):
    (run,) = plan(benchmark, [method], [seed], TINY | settings)
    execute(Regression(), run, RunContext(out))
    return run, RunFolder(out, run).path


@pytest.mark.parametrize("method", [*LANES, "ewc"])
def test_a_loaded_model_has_the_scores_of_its_run(method, tmp_path):
    run, folder = finished(tmp_path, method)
    model = vr.load(folder)
    table = load_data(run.data)
    rows = table.splits[1].test
    x, y = table.x[rows].numpy(), table.y[rows].numpy()
    scores = dict(line.split(",")[1:] for line in (folder / "scores.csv").read_text().split()[1:])
    rmse = math.sqrt(((model.predict(x).mean - torch.from_numpy(y)) ** 2).mean())
    assert rmse == pytest.approx(float(scores["rmse"]), rel=1e-6)
    assert float(model.log_prob(x, y).mean()) == pytest.approx(
        float(scores["log_likelihood"]), rel=1e-6
    )
    assert (model.predict(x).spread > 0).all()


def test_the_moments_of_a_mixture_are_those_of_its_draws():
    means, scales = torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0], [2.0]])
    torch.manual_seed(0)
    drawn = Normal(means, scales).sample((200_000,)).flatten()
    mean, spread = Mixture(means, scales).moments()
    assert float(mean) == pytest.approx(float(drawn.mean()), abs=0.02)
    assert float(spread) == pytest.approx(float(drawn.std()), abs=0.02)
    _, heavy = Mixture(means, scales, torch.tensor([2.0])).moments()
    assert torch.isinf(heavy).all()


def test_methods_whose_state_does_not_predict_keep_no_model(tmp_path):
    _, folder = finished(tmp_path, "badam")
    with fails(folder, "--no-model"):
        vr.load(folder)


def test_without_its_buffer_a_model_predicts_the_same(tmp_path):
    (run,) = plan("diabetes", ["replay"], [0], TINY)
    for points in (True, False):
        execute(Regression(), run, RunContext(tmp_path / str(points), keep_points=points))
    whole, less = (vr.load(RunFolder(tmp_path / name, run).path) for name in ("True", "False"))
    assert (whole.card["training_points"], less.card["training_points"]) == (200, 0)
    x = np.zeros((2, 10))
    assert torch.equal(whole.predict(x).mean, less.predict(x).mean)


def test_splits_of_a_table_are_no_ensemble(tmp_path):
    folders = [finished(tmp_path, "bayes-linear", seed=seed)[1] for seed in (0, 1)]
    with fails(folders[0].parent, "seed-"):
        vr.load(folders[0].parent)


def test_the_command_predicts_a_csv_file_whose_columns_may_be_in_another_order(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f},{k},{2 * a + (k == 'flat'):.3f}"
        for a, k in zip(rng.normal(size=60), ["flat", "house"] * 30, strict=True)
    ]
    (tmp_path / "homes.csv").write_text("\n".join(["size,kind,price", *rows]))
    toml = 'track = "regression"\n[data]\ntable = "homes.csv"\ntarget = "price"\nsplits = 2\n'
    (tmp_path / "homes.toml").write_text(toml)
    _, folder = finished(tmp_path, "bayes-linear", str(tmp_path / "homes.toml"))
    new = tmp_path / "new.csv"
    new.write_text("kind,price,size\nflat,3,1\nhouse,2,1\n")
    arguments = ["predict", str(folder), str(new), "--to", str(tmp_path / "p.csv")]
    assert main([*arguments, "--scores"]) == 0
    assert "2 rows: RMSE" in capsys.readouterr().out
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "input,mean,spread"
    means = [float(line.split(",")[1]) for line in lines[1:]]
    assert means == pytest.approx([3, 2], abs=0.2)
    new.write_text("kind,size\ncastle,1\n")
    assert main(arguments) == 1
    assert "row 2, column 'kind'" in capsys.readouterr().err


def test_the_model_of_a_table_has_a_card_and_no_export(tmp_path, capsys):
    _, folder = finished(tmp_path, "bayes-linear")
    assert main(["export", str(folder), "--to", str(tmp_path / "m.onnx")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(folder) in line
    scores = pd.read_csv(folder / "scores.csv").set_index("metric")["value"]
    row = f"| diabetes | {scores['rmse']:.2f} | {scores['log_likelihood']:.2f} |"
    assert row in card_text(folder)


def test_wrong_inputs_are_refused(tmp_path):
    model = vr.load(finished(tmp_path, "bayes-linear")[1])
    with data_fails("x", "[N, 10]"):
        model.predict(np.zeros((2, 9)))
    with data_fails("y", 3):
        model.log_prob(np.zeros((2, 10)), np.zeros(3))


def test_inputs_are_standardised_as_in_training(tmp_path):
    run, folder = finished(tmp_path, "bayes-linear")
    table = load_data(run.data)
    rows = table.splits[1].test
    expected = LaneSplits(table, [1]).test.x[0]
    assert torch.equal(vr.load(folder).inputs(table.x[rows]).float(), expected)


@pytest.mark.filterwarnings("error")
def test_rows_of_every_kind_of_number_are_predicted_and_all_else_is_one_line(tmp_path):
    run, folder = finished(tmp_path, "bayes-linear")
    model, x = vr.load(folder), load_data(run.data).x[:4].numpy()
    expected = model.predict(x)
    for rows in (x[::-1].copy()[::-1], x.astype(">f8"), pd.DataFrame(x), x.tolist()):
        assert torch.equal(model.predict(rows).mean, expected.mean)
        assert torch.equal(model.log_prob(rows, expected.mean), model.log_prob(x, expected.mean))
    assert model.predict(x[:0]).mean.shape == model.log_prob(x[:0], []).shape == (0,)
    for rows in (
        x.astype(complex),
        x.astype(str),
        None,
        pd.DataFrame(x).mask(x > 0).astype(object),
    ):
        with pytest.raises(DataError, match="x"):
            model.predict(rows)
    for value in (1e30, 1e300):
        with data_fails("x", "too large"):
            model.predict(np.full_like(x, value))
        for name in ("x", "y"):
            arrays = {"x": x, "y": expected.mean.numpy()}
            np.savez(tmp_path / "new.npz", **{**arrays, name: np.full_like(arrays[name], value)})
            with data_fails(tmp_path / "new.npz", f"{name}: ", "too large"):
                vr.update(folder, tmp_path / "new.npz", out=tmp_path / "out")
