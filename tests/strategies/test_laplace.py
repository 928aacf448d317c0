from dataclasses import replace

import learners
import pytest
import torch
from learners import score
from torch import nn
from torch.func import hessian
from torch.nn.functional import cross_entropy

from vcl_radial.curvature.gauss_newton import joint_weight
from vcl_radial.errors import UserError
from vcl_radial.nn import MLP
from vcl_radial.strategies.laplace_diagonal import LaplaceDiagonal
from vcl_radial.strategies.laplace_kronecker import LaplaceKronecker

METHODS = [LaplaceDiagonal, LaplaceKronecker]
both = pytest.mark.parametrize("method", METHODS)


def make(method, network, stream=None, **settings):
    torch.manual_seed(1)
    settings = {"lr": 1e-2, "train_epochs": 2, "eval_samples": 1, **settings}
    return learners.make(method, network, stream, **settings)


def train(strategy, benchmark, tasks):
    for task in tasks:
        strategy.train(benchmark.train_stream[task], eval_streams=[])


def penalty(strategy, benchmark, task):
    strategy.method.task = replace(strategy.method.task, heads=[task])
    return strategy.penalty()


def parameters(strategy):
    return {name: p.detach().clone() for name, p in strategy.network.named_parameters()}


def linear_softmax(inputs=64, classes=10):
    torch.manual_seed(0)
    return MLP(inputs, classes, hidden=(), multi_head=False, posterior=None)


def by_columns(weights):
    return weights.mT.flatten(-2)


def move(network):
    with torch.no_grad():
        for p in network.parameters():
            p.add_(0.1 * torch.randn_like(p))


@both
def test_the_first_prior_is_an_isotropic_gaussian_around_0(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(method, make_network(None), multi_head_stream, prior_precision=3.0)
    strategy.network.head.adapt([0, 1])
    used = [p for name, p in strategy.network.named_parameters() if ".heads.1." not in name]
    expected = sum(p.square().sum() for p in used) * 3 / 2
    torch.testing.assert_close(penalty(strategy, multi_head_benchmark, 0), expected)


def test_the_diagonal_adds_up_the_diagonals_of_the_true_hessians(
    single_head_stream, single_head_benchmark
):
    """A linear softmax model, whose Gauss-Newton matrix is the Hessian of its NLL."""
    strategy = make(
        LaplaceDiagonal, linear_softmax(), single_head_stream, prior_precision=0.3, hessian_weight=2
    )
    precision = torch.full((10, 65), 0.3)
    for task in (0, 1):
        train(strategy, single_head_benchmark, [task])
        x, y = single_head_stream.inputs(task, "train"), single_head_stream.labels(task, "train")
        mode = joint_weight("head.output", parameters(strategy))

        def nll(weights, x=x, y=y):
            logits = x @ weights[:, :64].t() + weights[:, 64]
            return cross_entropy(logits, y, reduction="sum")

        precision += 2 * hessian(nll)(mode).reshape(650, 650).diagonal().reshape(10, 65)
    move(strategy.network)
    moved = joint_weight("head.output", parameters(strategy)) - mode
    expected = (precision * moved.square()).sum() / 2
    found = penalty(strategy, single_head_benchmark, 1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


def test_kronecker_is_the_quadratic_form_of_the_dense_sum_over_tasks(
    single_head_stream, single_head_benchmark
):
    strategy = make(
        LaplaceKronecker,
        linear_softmax(),
        single_head_stream,
        prior_precision=0.3,
        hessian_weight=2,
    )
    precision = 0.3 * torch.eye(650)
    for task in (0, 1):
        train(strategy, single_head_benchmark, [task])
        x = single_head_stream.inputs(task, "train")
        a = torch.cat([x, torch.ones(len(x), 1)], dim=1)
        mode = joint_weight("head.output", parameters(strategy))
        p = (a @ mode.t()).softmax(-1)
        precision += 2 * torch.kron(a.t() @ a / len(a), p.sum(0).diag() - p.t() @ p)
    move(strategy.network)
    v = by_columns(joint_weight("head.output", parameters(strategy)) - mode)
    found = penalty(strategy, single_head_benchmark, 1)
    torch.testing.assert_close(found, v @ precision @ v / 2, rtol=1e-4, atol=0)


@both
def test_without_its_value_the_penalty_keeps_its_gradient(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    """In a second task: the body has a past, the head its first prior."""
    strategy = make(method, make_network(None), multi_head_stream)
    train(strategy, multi_head_benchmark, [0])
    strategy.network.head.adapt([1])
    move(strategy.network)
    used = [p for name, p in strategy.network.named_parameters() if ".heads.0." not in name]
    gradients = []
    for strategy.loss_value in (True, False):
        gradients.append(torch.autograd.grad(penalty(strategy, multi_head_benchmark, 1), used))
    for some, others in zip(*gradients, strict=True):
        torch.testing.assert_close(some, others)
        assert some.abs().max() > 0


@both
def test_heads_of_other_tasks_neither_move_nor_count(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(method, make_network(None), multi_head_stream, prior_precision=2.0)
    strategy.network.head.adapt([0, 1, 2])
    before = parameters(strategy)
    train(strategy, multi_head_benchmark, [0])
    first = parameters(strategy)
    known = {name for name in first if ".heads.1." not in name and ".heads.2." not in name}
    assert set(strategy.method.past.precision) == known
    train(strategy, multi_head_benchmark, [1])
    second = parameters(strategy)
    for name in before:
        assert torch.equal(before[name], first[name]) is (".heads.1" in name or ".heads.2" in name)
        assert torch.equal(first[name], second[name]) is (".heads.0" in name or ".heads.2" in name)
    # Consolidated, the penalty of old tasks is 0; a head to come still has the first prior.
    assert penalty(strategy, multi_head_benchmark, 1).item() == 0
    expected = sum(p.square().sum() for name, p in second.items() if ".heads.2." in name)
    torch.testing.assert_close(penalty(strategy, multi_head_benchmark, 2).detach(), expected)


def consolidated(method, network, stream, benchmark, **settings):
    """The penalty, away from the mode, that two tasks leave where no step is taken."""
    strategy = make(method, network, stream, **settings)
    strategy.optimizer_step = lambda: None
    train(strategy, benchmark, [0, 1])
    torch.manual_seed(2)
    move(strategy.network)
    return penalty(strategy, benchmark, 0).detach()


@both
def test_what_is_carried_depends_neither_on_the_batches_nor_on_the_loader(
    method, scenario, make_network
):
    multi_head, stream, benchmark = scenario
    expected = consolidated(method, make_network(None, multi_head), stream, benchmark)
    for size in (7, 1000):
        found = consolidated(
            method, make_network(None, multi_head), stream, benchmark, train_mb_size=size
        )
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)
    leaving_out = consolidated(
        method, make_network(None, multi_head), stream, benchmark, train_mb_size=100, drop_last=True
    )
    torch.testing.assert_close(leaving_out, expected, rtol=1e-4, atol=0)
    stock = consolidated(method, make_network(None, multi_head), None, benchmark)
    torch.testing.assert_close(stock, expected, rtol=1e-4, atol=0)


@both
def test_the_more_the_hessian_weighs_the_less_is_forgotten(
    method, single_head_stream, single_head_benchmark, make_network
):
    """NLL of the first task after two, with one head for all."""
    forgotten = []
    for weight in (0, 100, 10_000):
        strategy = make(
            method,
            make_network(None, multi_head=False),
            single_head_stream,
            train_epochs=10,
            hessian_weight=weight,
        )
        train(strategy, single_head_benchmark, [0, 1])
        forgotten.append(score(strategy, single_head_benchmark.test_stream[:1], "nll"))
    assert forgotten[0] > 2 * forgotten[2]
    assert forgotten[0] > forgotten[1] > forgotten[2]


@both
def test_a_state_dict_does_not_change_afterwards(
    method, make_network, multi_head_stream, multi_head_benchmark
):
    strategy = make(method, make_network(None), multi_head_stream)
    train(strategy, multi_head_benchmark, [0])
    past = strategy.state_dict()["past"]
    centre, names = past["centre"]["body.0.weight"].clone(), set(past["centre"])
    train(strategy, multi_head_benchmark, [1])
    assert torch.equal(past["centre"]["body.0.weight"], centre)
    assert set(past["centre"]) == names


@both
@pytest.mark.parametrize("key", ["prior_precision", "hessian_weight"])
@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_negative_factor_is_refused(method, key, value, make_network):
    with pytest.raises(UserError, match=f"{key} = {value} must not be below 0"):
        make(method, make_network(None), **{key: value})


@both
def test_a_posterior_is_refused(method, make_network):
    with pytest.raises(UserError, match="set posterior = 'none'"):
        make(method, make_network("gaussian"))


def test_kronecker_says_at_once_which_weights_it_has_no_factors_for():
    network = nn.Sequential(nn.Linear(64, 8), nn.LayerNorm(8), nn.Linear(8, 10))
    with pytest.raises(UserError, match=r"'1\.bias' is not of one: .* 'laplace_diagonal'"):
        make(LaplaceKronecker, network)
    make(LaplaceDiagonal, network)
