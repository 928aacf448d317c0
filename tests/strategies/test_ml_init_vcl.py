import copy

import pytest
import torch
from learners import (
    make,
    score,
    train,
    weights,
)
from torch.optim import SGD, Adam

from vcl_radial.nn import MLP
from vcl_radial.nn.rdp import GROUPINGS, RDPSettings
from vcl_radial.strategies.ml_init_vcl import MLInitVCL
from vcl_radial.strategies.naive import Naive


def means(network):
    return {
        name: tensor
        for name, tensor in network.state_dict().items()
        if name.endswith((".mean", "weight", "bias"))
    }


def test_the_start_is_where_point_estimates_end(
    make_network, multi_head_stream, multi_head_benchmark
):
    """Batches of the whole task leave no randomness but the noise that there is not."""
    first = multi_head_benchmark.train_stream[0]
    settings = {"optimizer": lambda model: SGD(model.parameters(), lr=0.05), "train_mb_size": 1000}
    bayesian, point = make_network("gaussian"), make_network(None)
    start = copy.deepcopy(bayesian)
    start.head.adapt([0])
    vcl = make(MLInitVCL, bayesian, multi_head_stream, ml_epochs=30, train_epochs=0, **settings)
    naive = make(Naive, point, multi_head_stream, train_epochs=30, **settings)
    for each in (vcl, naive):
        each.train(first, eval_streams=[])
    for layer, point_layer in [
        (bayesian.body[0], point.body[0]),
        (bayesian.head.head(0), point.head.head(0)),
    ]:
        weight, bias = layer.weights.mean()
        torch.testing.assert_close(weight, point_layer.weight, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(bias, point_layer.bias, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(bayesian.body[0].weights.mean()[0], start.body[0].weights.mean()[0])


@pytest.mark.parametrize(("every_task", "starts"), [(False, [True, False]), (True, [True, True])])
def test_scales_and_priors_wait_for_the_variational_training(
    every_task, starts, make_network, multi_head_stream, multi_head_benchmark
):
    network = make_network("gaussian", initial_noise=0.02)
    vcl = make(
        MLInitVCL,
        network,
        multi_head_stream,
        ml_epochs=3,
        train_epochs=0,
        every_task=every_task,
        penalty_weight=0.7,
    )
    for experience, start in zip(multi_head_benchmark.train_stream, starts, strict=False):
        network.head.adapt(experience.task_labels)
        before = copy.deepcopy(network.state_dict())
        vcl.consolidate = lambda experience: None
        vcl.train(experience, eval_streams=[])
        after = network.state_dict()
        moved = {name for name in before if _differ(before[name], after[name])}
        head = f"head.heads.{experience.task_labels[0]}."
        expected = {n for n in before if n.endswith(".mean") and n.startswith(("body", head))}
        assert moved == (expected if start else set())
        assert vcl.penalty_weight == 0.7


def _differ(a, b):
    return not torch.equal(a, b) if isinstance(a, torch.Tensor) else a != b


def test_a_start_at_the_likelihood_fits_sooner(
    make_network, multi_head_stream, multi_head_benchmark
):
    found = []
    for ml_epochs in (0, 20):
        network = make_network("gaussian", initial_noise=0.1)
        vcl = make(MLInitVCL, network, multi_head_stream, ml_epochs=ml_epochs, train_epochs=3)
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        found.append(score(vcl, multi_head_benchmark.test_stream[:1], "nll"))
    assert found[1] < 0.7 * found[0]


def test_the_start_is_trained_by_the_schedule(
    make_network, multi_head_stream, multi_head_benchmark
):
    ends = []
    for ml_epochs in (1, 3, 0):
        torch.manual_seed(0)
        vcl = make(
            MLInitVCL,
            make_network("gaussian"),
            multi_head_stream,
            ml_epochs=ml_epochs,
            train_epochs=0,
            schedule=lambda share: float(share == 0),  # steps in the first of its epochs alone
        )
        torch.manual_seed(0)
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        ends.append(weights(vcl))
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_radii_and_directions_start_at_the_likelihood_too(
    grouping, single_head_stream, single_head_benchmark
):
    """Without noise, and with their concentrations, scales and priors as they were."""
    ends = []
    for seed in (1, 2):
        torch.manual_seed(0)
        network = MLP(64, 10, hidden=(8,), multi_head=False, posterior=RDPSettings(grouping, 0.05))
        before = copy.deepcopy(network.state_dict())
        vcl = make(
            MLInitVCL,
            network,
            single_head_stream,
            ml_epochs=3,
            train_epochs=0,
            train_mb_size=1000,
            optimizer=lambda model: SGD(model.parameters(), lr=0.05),
        )
        vcl.consolidate = lambda experience: None
        torch.manual_seed(seed)
        vcl.train(single_head_benchmark.train_stream[0], eval_streams=[])
        after = network.state_dict()
        moved = {name.rsplit(".", 1)[1] for name in before if _differ(before[name], after[name])}
        assert moved == {"direction", "loc", "mean"}
        assert all(p.requires_grad for p in network.parameters())
        assert not torch.equal(*(network(torch.ones(1, 64)) for _ in range(2)))  # it draws again
        ends.append(weights(vcl))
    torch.testing.assert_close(*ends)


def test_a_stock_optimiser_starts_afresh_in_between(
    make_network, multi_head_stream, multi_head_benchmark
):
    """As one that a function makes anew for each of the two trainings."""
    ends = []
    for stock in (False, True):
        network = make_network("gaussian")
        network.head.adapt([0])

        def optimizer(model):
            return Adam(model.parameters(), lr=1e-3)

        vcl = make(
            MLInitVCL,
            network,
            multi_head_stream,
            ml_epochs=1,
            optimizer=optimizer(network) if stock else optimizer,
        )
        train(vcl, list(multi_head_benchmark.train_stream)[:1])
        ends.append(weights(vcl))
    assert torch.equal(*ends)
