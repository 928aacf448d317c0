"""A finished run on photographs is a model: it predicts what the run has predicted."""

import pandas as pd
import pytest
import torch
from failing import data_fails
from PIL import Image
from retinopathy_helpers import execute, recipe, two_sites

import vcl_radial as vr
from vcl_radial.models.export import export
from vcl_radial.models.predict import predict_file
from vcl_radial.runs.folder import RunFolder
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run

DATA = {"size": 16, "crop": False, "normalise": "none", "patients": 40}


def finished(folder, **keys):
    """The folder of a run on two sites."""
    made = recipe(epochs=1, select="last", **keys)
    data = DataSettings(**DATA)
    run = Run(benchmark="drawn", method="made-up", seed=3, data=data, recipe=made)
    execute(RunFolder(folder, run), two_sites())
    return RunFolder(folder, run).path


@pytest.fixture
def photographs(tmp_path):
    """The test photographs of the second site as files, with their prediction by the run."""
    site = two_sites()[1]
    for row in site.split.test:
        photograph = site.data.photographs.rows[row]
        picture = site.data.photographs.reader.read(photograph, 16)
        path = tmp_path / "photographs" / f"{photograph.name}.png"
        path.parent.mkdir(exist_ok=True)
        picture.save(path)
    return tmp_path / "photographs"


@pytest.mark.parametrize("targets", ["referable", "levels"])
def test_a_folder_of_photographs_is_predicted_as_by_the_run(targets, photographs, tmp_path):
    path = finished(tmp_path / "out", targets=targets)
    model = vr.load(path)
    assert model.classes == [["healthy", "referable"]]
    assert model.tasks == ["one", "two"]
    predict_file(model, str(photographs), tmp_path / "out.csv", probabilities=True)
    rows = pd.read_csv(tmp_path / "out.csv", index_col="input")
    by_run = pd.read_csv(path / "predictions.csv")
    by_run = by_run[(by_run["after"] == "two") & (by_run["part"] == "two")].set_index("image")
    assert len(rows) == len(by_run) > 0
    rows.index = rows.index.str.removesuffix(".png")
    for name, column in (
        ("p(referable)", "probability"),
        *[(n, n) for n in ("entropy", "mutual_information")],
    ):
        assert rows[name].to_numpy() == pytest.approx(
            by_run.loc[rows.index, column].to_numpy(), abs=1e-4
        )


def test_an_export_takes_photographs_before_their_normalisation(tmp_path):
    model = vr.load(finished(tmp_path / "out", posterior="radial", targets="levels"))
    x = two_sites()[1].data.images(range(3))
    export(model, tmp_path / "model.pt2", draws=2)
    probs = torch.export.load(tmp_path / "model.pt2").module()(x.float())
    expected = model.log_probabilities(model.draws(x, 2)).exp()
    assert probs.shape == (2, 3, 2)
    assert torch.allclose(probs, expected, atol=1e-5)


def test_uncertainty_and_posterior_of_photographs(photographs, tmp_path):
    model = vr.load(finished(tmp_path / "out", posterior="radial"))
    x = two_sites()[1].data.images(range(5))
    entropy, mutual, expected = model.uncertainty(x)
    assert torch.allclose(entropy, mutual + expected, atol=1e-6)
    assert model.draws(x).shape == (4, 5, 2)
    assert model.posterior
    bad = photographs / "bad.jpg"
    bad.write_bytes(b"no picture")
    with data_fails(bad):
        predict_file(model, str(photographs), tmp_path / "out.csv")
    Image.new("RGB", (30, 20)).save(bad)
    predict_file(model, str(photographs), tmp_path / "out.csv")
