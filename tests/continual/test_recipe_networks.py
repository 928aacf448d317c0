import pytest
import torch
from failing import refuses

from vcl_radial.nn import MLP, BayesianConv2d, PosteriorBlock, WithHeads
from vcl_radial.tracks.continual.lane_runs import shape
from vcl_radial.tracks.continual.networks import make_network, stream_for
from vcl_radial.tracks.continual.settings import Recipe, StreamSettings
from vcl_radial.tracks.continual.training import ContinualRun

DIGITS = StreamSettings(dataset="digits", tasks=2)
CODE = """
from torch import nn


def convnet(shape):
    channels, height, width = shape
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten())


def nothing(shape):
    return None


def failing(shape):
    return undefined
"""


@pytest.fixture(autouse=True)
def _code(user_module):
    user_module("own_networks", CODE)


def recipe(**settings):
    quick = {"network": "own_networks:convnet", "epochs": 1, "batch_size": 64, "eval_samples": 2}
    return Recipe(**quick | settings)


def test_an_own_network_is_given_images_and_gets_posterior_and_heads():
    settings = recipe(posterior="gaussian", prior_scale=0.5, initial_noise=0.01)
    stream = stream_for(DIGITS, settings)
    assert list(stream.x.shape[1:]) == [1, 8, 8]
    network = make_network(stream, settings)
    assert isinstance(network, WithHeads)
    assert isinstance(network.body[0], BayesianConv2d)
    network.head.adapt([1])
    for block in (m for m in network.modules() if isinstance(m, PosteriorBlock)):
        assert torch.allclose(block.posterior.scale, torch.tensor(0.01))
        assert torch.allclose(block.prior.scale, torch.tensor(0.5))


def test_without_one_the_network_is_an_mlp_of_vectors():
    settings = recipe(network=None)
    stream = stream_for(DIGITS, settings)
    assert stream.x.ndim == 2
    assert isinstance(make_network(stream, settings), MLP)


@pytest.mark.parametrize("method", ["vcl", "ewc", "vadam"])
def test_methods_run_on_an_own_network(method):
    posterior = "gaussian" if method == "vcl" else "none"
    run = ContinualRun(DIGITS, recipe(strategy=method, posterior=posterior), 0)
    assert list(run.finish_tasks()) == [1, 2]
    assert run.average_accuracy() > 25


def test_an_own_network_runs_alone_not_in_a_lane():
    assert shape(recipe()) is None
    assert shape(recipe(network=None)) is not None


@pytest.mark.parametrize(
    ("network", "named"),
    [
        ("own_networks:nobody", ["'nobody'"]),
        ("own_networks:nothing", ["NoneType"]),
        ("own_networks:failing", ["NameError", "own_networks.py", "line 15"]),
    ],
)
def test_what_is_no_network_is_named_in_one_line(network, named):
    settings = recipe(network=network)
    with refuses(f"network = '{network}'", *named):
        make_network(stream_for(DIGITS, settings), settings)
