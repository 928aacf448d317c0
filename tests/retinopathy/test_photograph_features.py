"""Features of EfficientNet-lite0 in place of pixels, and a head that learns on them."""

import numpy as np
import pandas as pd
import pytest
import torch
from failing import fails, refuses
from retinopathy_helpers import execute, recipe, two_sites

import vcl_radial as vr
from vcl_radial.data import backbones
from vcl_radial.data.fundus import features
from vcl_radial.data.fundus.data import FundusData
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.networks import make_network
from vcl_radial.tracks.retinopathy.prepare import with_features
from vcl_radial.tracks.retinopathy.settings import DataSettings, Run

HELD = {"network": backbones.LITE0, "augment": False}

pytestmark = pytest.mark.skipif(
    backbones.weights_file() is None, reason=f"{backbones.PACKAGE} is not installed"
)


@pytest.fixture
def sites():
    return with_features(two_sites())


def test_the_parts_of_the_features_are_mean_maximum_and_deviation_of_each_map():
    images = two_sites()[0].data.images(range(3))
    rows = features.photograph_backbone().load()(images)
    assert rows.shape == (3, features.SIZE)
    widths, start = (24, 40, 112, 192), 0
    for width in widths:
        mean, largest, deviation = rows[:, start : start + 3 * width].split(width, dim=1)
        assert (largest >= mean - 1e-5).all()
        assert (deviation >= 0).all()
        start += 3 * width
    mean, largest = rows[:, start:].split(1280, dim=1)
    assert (largest >= mean - 1e-5).all()


def test_the_features_of_a_photograph_depend_on_no_other(sites):
    images = two_sites()[0].data.images(range(6))
    alone = features.photograph_backbone().load()(images[4:5])
    torch.testing.assert_close(sites[0].data.images([4]).float(), alone, rtol=1e-2, atol=1e-2)


def test_the_first_sites_training_part_is_normalised_and_the_second_one_as_it(sites):
    first, second = sites
    x = first.normalisation(first.data.images(first.split.train))
    constant = x.std(0) == 0
    assert float(x.mean(0).abs().max()) < 1e-3
    np.testing.assert_allclose(x.std(0, correction=0)[~constant], 1.0, atol=1e-3)
    assert second.normalisation == first.normalisation


def test_sites_are_joined_with_their_features(sites):
    joined = FundusData.concatenate([site.data for site in sites])
    n = len(sites[0].data)
    assert torch.equal(joined.images([n + 2, 1])[0], sites[1].data.images([2])[0])
    assert torch.equal(joined.images([n + 2, 1])[1], sites[0].data.images([1])[0])


@pytest.mark.parametrize("posterior", ["none", "radial"])
def test_only_a_linear_head_learns(posterior):
    network = make_network(recipe(posterior=posterior, **HELD, targets="levels"), 16)
    copies = 1 if posterior == "none" else 2
    assert sum(p.numel() for p in network.parameters()) == copies * 5 * (features.SIZE + 1)


def test_a_kept_model_predicts_photographs_as_the_run(tmp_path, sites):
    made = recipe(epochs=2, select="last", posterior="gaussian", **HELD)
    data = DataSettings(size=16, crop=False, normalise="none", patients=40)
    run = Run(benchmark="drawn", method="made-up", seed=3, data=data, recipe=made)
    folder = RunFolder(tmp_path, run)
    execute(folder, sites)
    by_run = pd.read_csv(folder.path / "predictions.csv")
    by_run = by_run[(by_run["after"] == "two") & (by_run["part"] == "two")]
    model = vr.load(folder.path)
    pixels = two_sites()[1].data.images(sites[1].split.test)
    assert model.predict(pixels)[:, 1].numpy() == pytest.approx(
        by_run["probability"].to_numpy(), abs=1e-2
    )


def test_changed_photographs_and_a_missing_package_are_one_line(monkeypatch):
    with refuses("augment", backbones.LITE0):
        plan("retinopathy-synthetic", ["naive"], [0], {"network": backbones.LITE0})
    monkeypatch.setattr(backbones, "find_spec", lambda name: None)
    with fails(backbones.LITE0, "pip install"):
        make_network(recipe(**HELD), 16)
