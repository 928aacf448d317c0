import pytest
import torch
from torch import nn

from vcl_radial.errors import UserError
from vcl_radial.nn import BayesianConv2d, MultiHead, WithHeads, kl_divergence, variational_weights
from vcl_radial.nn.linear import PointLinear

SHAPE = (1, 8, 8)


def body():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())


def test_logits_are_those_of_the_bodys_features_in_the_tasks_head():
    network = WithHeads(body(), SHAPE, 3, posterior=None).eval()
    x = torch.randn(5, *SHAPE)
    for task in (0, 2):
        logits = network(x, task)
        assert logits.shape == (5, 3)
        assert torch.equal(logits, network.head.head(task)(network.body(x)))
    assert not torch.equal(network(x, 0), network(x, 2))


def test_body_and_heads_have_the_posterior_and_normalisation_has_none():
    network = WithHeads(body(), SHAPE, 3, posterior="radial")
    assert isinstance(network.head, MultiHead)
    network.head.adapt([0])
    assert isinstance(network.body[0], BayesianConv2d)
    assert isinstance(network.body[1], nn.BatchNorm2d)
    assert len(list(variational_weights(network, [0]))) == 2
    assert kl_divergence(network, [0]).item() > 0
    x = torch.randn(5, *SHAPE)
    assert not torch.equal(network(x), network(x))


def test_heads_can_be_points_and_one_head_can_serve_all():
    network = WithHeads(body(), SHAPE, 3, multi_head=False, point_heads=True)
    assert isinstance(network.head.output, PointLinear)
    x = torch.randn(5, *SHAPE)
    network = WithHeads(body(), SHAPE, 3, multi_head=False, posterior=None).eval()
    assert torch.equal(network(x, 0), network(x, 1))


def test_the_body_is_as_it_was_after_it_was_looked_at():
    given = body()
    WithHeads(given, SHAPE, 3, posterior=None)
    assert given.training
    assert given[1].num_batches_tracked == 0


def test_bfloat16_is_near_float32_and_gives_float32():
    network = WithHeads(body(), SHAPE, 3, posterior=None).eval()
    x = torch.randn(5, *SHAPE)
    exact = network(x)
    network.in_bfloat16 = True
    assert network(x).dtype == torch.float32
    assert not torch.equal(network(x), exact)
    assert not torch.equal(network(x), network(x).bfloat16().float())
    assert torch.allclose(network(x), exact, atol=0.05)


def test_on_a_body_without_parameters_the_single_head_has_the_posterior():
    network = WithHeads(nn.Flatten(), SHAPE, 3, multi_head=False, posterior="radial")
    assert len(list(variational_weights(network, [0]))) == 1
    with pytest.raises(UserError, match="no linear layer or convolution"):
        WithHeads(nn.Flatten(), SHAPE, 3, multi_head=False, posterior="radial", point_heads=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (nn.Conv2d(1, 4, 3), r"for one input it gives \[1, 4, 6, 6\]"),
        (nn.Linear(3, 3), r"the network fails on one input \[1, 8, 8\]: RuntimeError: "),
        (nn.GRU(8, 4), "fails on one input"),
        (nn.Flatten(), "no linear layer or convolution to convert"),
    ],
)
def test_what_gives_no_features_is_refused_in_words(given, words):
    with pytest.raises(UserError, match=words):
        WithHeads(given, SHAPE, 3)
