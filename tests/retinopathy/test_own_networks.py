"""Networks of the user's own on photographs."""

import pytest
import retinopathy_helpers
import torch
from failing import refuses
from retinopathy_helpers import Training, execute, recipe, run_of
from torch import nn

from vcl_radial.nn import BayesianConv2d, BayesianLinear, PosteriorBlock, WithHeads
from vcl_radial.nn.vgg import VGG
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.retinopathy.networks import make_network

CODE = """
from torch import nn


class Looks(nn.Module):
    def forward(self, x):
        return x if x.mean() > 1e9 else x.flatten(1)


def convnet(shape):
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), Looks()
    )
"""
OWN = "own_eyes:convnet"


@pytest.fixture(autouse=True)
def _code(user_module):
    user_module("own_eyes", CODE)


def test_it_gets_the_recipes_posterior_and_a_head():
    network = make_network(recipe(network=OWN, posterior="gaussian", initial_noise=0.01), 16)
    assert isinstance(network, WithHeads)
    assert isinstance(network.body[0], BayesianConv2d)
    assert isinstance(network.body[1], nn.BatchNorm2d)
    assert network(torch.randn(3, 3, 16, 16)).shape == (3, 2)
    for block in (m for m in network.modules() if isinstance(m, PosteriorBlock)):
        assert torch.allclose(block.posterior.scale, torch.tensor(0.01))
    assert isinstance(make_network(recipe(), 16), VGG)


def test_it_learns_what_brightness_tells():
    keys = {"network": OWN, "posterior": "radial", "epochs": 10, "learning_rate": 0.01}
    photographs = retinopathy_helpers.prepared(40)
    training = Training(recipe(**keys, kl_weight=0.0), photographs, seed=0).run()
    assert training.trainer.best_score > 95


def test_a_run_of_it_ends(tmp_path, prepared):
    folder = RunFolder(tmp_path, run_of(network=OWN, epochs=1))
    execute(folder, [prepared])
    assert folder.finished()


def test_of_features_that_are_fixed_the_head_alone_has_a_posterior():
    texture = "vcl_radial.tracks.retinopathy.band_energies:BandEnergies"
    network = make_network(recipe(network=texture, posterior="radial"), 16)
    blocks = [name for name, m in network.named_modules() if isinstance(m, PosteriorBlock)]
    assert blocks
    assert all(name.startswith("head.") for name in blocks)
    assert isinstance(network.head.output, BayesianLinear)


def test_runs_of_a_network_whose_file_was_edited_are_others(user_module):
    user_module("edited_eyes", CODE)
    run = run_of(network="edited_eyes:convnet")
    before = run.on_data(None).digest()
    assert run.on_data(None).digest() == before != run.digest()
    user_module("edited_eyes", CODE + "# edited\n")
    assert run.on_data(None).digest() != before
    assert run_of(network="own_eyes:nobody").on_data(None).code is None


def test_what_cannot_be_is_refused_before_a_run():
    with refuses("network = 'cnn'", "resnet", "vgg", "convnet", "'package.module:function'"):
        plan("retinopathy-synthetic", ["radial-vcl"], [0], {"network": "cnn"})


def test_one_that_is_not_found_is_said_in_one_line():
    with refuses("network = 'own_eyes:nobody'", "'own_eyes'", "'nobody'"):
        make_network(recipe(network="own_eyes:nobody"), 16)
