"""A Bayesian body with point estimates in its heads."""

import pytest
import torch
from learners import make

from vcl_radial.nn import MLP, PointLinear, kl_divergence
from vcl_radial.strategies.vcl import VCL


@pytest.mark.parametrize("multi_head", [True, False])
def test_point_heads_leave_the_body_bayesian(multi_head):
    torch.manual_seed(0)
    network = MLP(64, 2, hidden=(8,), multi_head=multi_head, posterior="radial", point_heads=True)
    head = network.head.head(0) if multi_head else network.head.output
    assert isinstance(head, PointLinear)
    body_kl = network.body[0].weights.kl()
    assert torch.equal(kl_divergence(network, [0]), body_kl)


def test_a_point_head_is_trained_with_its_task_only(
    make_network, multi_head_stream, multi_head_benchmark
):
    torch.manual_seed(0)
    network = MLP(64, 2, hidden=(32,), posterior="gaussian", point_heads=True)
    vcl = make(VCL, network, multi_head_stream)
    first, second = list(multi_head_benchmark.train_stream)[:2]
    network.head.adapt([0, 1])
    untrained = network.head.head(1).weight.clone()
    vcl.train(first, eval_streams=[])
    assert torch.equal(network.head.head(1).weight, untrained)
    trained = network.head.head(0).weight.clone()
    vcl.train(second, eval_streams=[])
    assert torch.equal(network.head.head(0).weight, trained)
    assert not torch.equal(network.head.head(1).weight, untrained)


def test_without_a_posterior_point_heads_change_nothing():
    networks = []
    for point_heads in (True, False):
        torch.manual_seed(0)
        networks.append(MLP(4, 2, hidden=(3,), posterior=None, point_heads=point_heads))
        networks[-1].head.adapt([0])
    first, second = (network.state_dict() for network in networks)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
