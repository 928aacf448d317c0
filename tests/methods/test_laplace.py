"""The Laplace methods: the first prior as a density, and the Hessians that they add up."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from scenarios import ALL, Learner, network
from torch import nn
from torch.distributions import Normal
from torch.func import hessian
from torch.nn.functional import cross_entropy, linear

from vcl_radial.curvature.gauss_newton import joint_weight
from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.nn import MLP

KRONECKER = "laplace_kronecker"
both = pytest.mark.parametrize("name", ["laplace_diagonal", "laplace_kronecker"])
every = pytest.mark.parametrize(
    "name", ["laplace_diagonal", "laplace_kronecker", "laplace_low_rank"]
)


def make(name, net=None, **settings):
    settings = {"lr": 1e-2, "epochs": 2, **settings}
    return Learner(name, network(None) if net is None else net, **settings)


def penalty(learner, task):
    learner.method.task = replace(learner.method.task, heads=[task])
    return learner.method.penalty()


def move(learner):
    torch.manual_seed(2)
    with torch.no_grad():
        for p in learner.network.parameters():
            p.add_(0.1 * torch.randn_like(p))


@every
def test_the_first_prior_is_an_isotropic_gaussian_around_0(name):
    """Of the heads to come too, whatever the past."""
    learner = make(name, prior_precision=3.0)
    learner.adapt(0, 1)
    used = [p for n, p in learner.network.named_parameters() if ".heads.1." not in n]
    expected = sum(p.square().sum() for p in used) * 3 / 2
    torch.testing.assert_close(penalty(learner, 0), expected)
    learner.train(0)
    expected = sum(p.square().sum() for p in learner.network.head.head(1).parameters()) * 3 / 2
    torch.testing.assert_close(penalty(learner, 1), expected)
    assert not any(".heads.1." in n for n in learner.method.past.precision)


@pytest.mark.parametrize("precision", [0.25, 3.0])
@pytest.mark.parametrize("carried", [False, True])
def test_the_penalty_is_minus_the_log_of_the_prior_density(precision, carried):
    """In nats, up to a constant: before the first task, and beside weights that one trained."""
    torch.manual_seed(0)
    net = MLP(3, 2, hidden=(4,), multi_head=False, posterior=None)
    method = LaplaceMethod(net, prior_precision=precision)
    priors = {n: Normal(0.0, precision**-0.5) for n, _ in net.named_parameters()}
    if carried:
        body = {n: w for n, w in net.named_parameters() if n.startswith("body")}
        sharper = {n: torch.rand_like(w) + 5 for n, w in body.items()}
        method.past.carry(body, sharper)
        priors |= {n: Normal(w.detach().clone(), sharper[n] ** -0.5) for n, w in body.items()}
    values = []
    for _ in range(2):
        with torch.no_grad():
            for weight in net.parameters():
                weight.add_(torch.randn_like(weight))
            density = sum(priors[n].log_prob(w).sum() for n, w in net.named_parameters())
        values.append((method.penalty().detach(), -density))
    (before, expected_before), (after, expected_after) = values
    torch.testing.assert_close(after - before, expected_after - expected_before)


def by_columns(weights):
    return weights.mT.flatten(-2)


@both
def test_it_adds_up_the_hessians_of_a_model_whose_gauss_newton_matrix_is_the_hessian(name):
    """A linear softmax model: its whole Hessian for Kronecker factors, and its diagonal."""
    net = network(None, False, hidden=())
    learner = make(name, net, prior_precision=0.3, hessian_weight=2)
    dense, diagonal = 0.3 * torch.eye(650), torch.full((10, 65), 0.3)
    for task in (0, 1):
        learner.train(task)
        x, y, _ = learner.points(task)
        mode = joint_weight("head.output", learner.parameters())
        a = torch.cat([x, torch.ones(len(x), 1)], dim=1)
        if name == "laplace_diagonal":

            def nll(weights, x=a, y=y):
                return cross_entropy(x @ weights.t(), y, reduction="sum")

            diagonal += 2 * hessian(nll)(mode).reshape(650, 650).diagonal().reshape(10, 65)
        p = (a @ mode.t()).softmax(-1)
        dense += 2 * torch.kron(a.t() @ a / len(a), p.sum(0).diag() - p.t() @ p)
    move(learner)
    moved = joint_weight("head.output", learner.parameters()) - mode
    expected = (diagonal * moved.square()).sum() / 2
    if name == "laplace_kronecker":
        v = by_columns(moved)
        expected = v @ dense @ v / 2
    torch.testing.assert_close(penalty(learner, 1), expected, rtol=1e-4, atol=0)


@every
def test_without_its_value_the_penalty_keeps_its_gradient(name):
    """In a second task: the body has a past, the head its first prior."""
    learner = make(name).train(0)
    learner.adapt(1)
    move(learner)
    used = [p for n, p in learner.network.named_parameters() if ".heads.0." not in n]
    gradients = []
    for learner.method.loss_value in (True, False):
        gradients.append(torch.autograd.grad(penalty(learner, 1), used))
    for some, others in zip(*gradients, strict=True):
        torch.testing.assert_close(some, others)
        assert some.abs().max() > 0


@every
def test_what_is_carried_does_not_depend_on_the_batches(name, multi_head):
    penalties = []
    for size in (19, ALL):
        net = network(None, multi_head, hidden=(8,))
        learner = make(name, net, batch_size=size, epochs=1)
        learner.method.step = lambda optimizer: None
        learner.train(0, 1)
        move(learner)
        penalties.append(penalty(learner, 0).detach())
    torch.testing.assert_close(*penalties, rtol=1e-4, atol=0)


@every
def test_the_more_the_hessian_weighs_the_less_is_forgotten(name):
    """NLL of the first task after two, with one head for all."""
    settings = {"epochs": 5, "batch_size": 64}
    forgotten = [
        make(name, network(None, False, (8,)), hessian_weight=weight, **settings).train(0, 1).nll(0)
        for weight in (0, 100, 10_000)
    ]
    assert forgotten[0] > 2 * forgotten[2]
    assert forgotten[0] > forgotten[1] > forgotten[2]


def test_of_full_rank_it_is_the_whole_hessian():
    """Of a linear softmax model, whose Gauss-Newton matrix is its Hessian."""
    settings = {"rank": 650, "prior_precision": 0.3, "hessian_weight": 2}
    learner = make("laplace_low_rank", network(None, False, hidden=()), **settings)
    dense = 0.3 * torch.eye(650)
    for task in (0, 1):
        learner.train(task)
        x, *_ = learner.points(task)
        mode = joint_weight("head.output", learner.parameters())
        a = torch.cat([x, torch.ones(len(x), 1)], dim=1)
        p = (a @ mode.t()).softmax(-1)
        of_points = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
        dense += 2 * torch.einsum("nij,nk,nl->kilj", of_points, a, a).reshape(650, 650)
    move(learner)
    moved = joint_weight("head.output", learner.parameters()) - mode
    v = by_columns(moved)
    torch.testing.assert_close(penalty(learner, 1), v @ dense @ v / 2, rtol=1e-3, atol=0)


def test_it_has_the_diagonal_of_the_laplace_of_that_name():
    pasts = [
        make(name, network(None, hidden=(8,)), hessian_weight=3.0).train(0).method.past
        for name in ("laplace_low_rank", "laplace_diagonal")
    ]
    low, diagonal = pasts
    for name, P in low.precision.items():
        whole = P + low.factor[name].square().sum(0).view_as(P)
        torch.testing.assert_close(whole, diagonal.precision[name], rtol=1e-4, atol=1e-5)
        assert (P >= 1 - 1e-6).all()
    assert sum(V.square().sum() for V in low.factor.values()) > 0


def test_summed_factors_are_those_of_all_tasks_until_there_are_two(multi_head):
    learners = [
        make("laplace_kronecker", network(None, multi_head, (8,)), factors=factors, epochs=1)
        for factors in ("all", "summed")
    ]
    for learner in learners:
        learner.train(0, 1)
    assert torch.equal(*(learner.weights() for learner in learners))
    for learner in learners:
        learner.train(2)
    assert not torch.equal(*(learner.weights() for learner in learners))
    kept = [learner.method.past.factors["body.0"] for learner in learners]
    assert [len(factors) for factors in kept] == [3, 1]


def test_weights_without_factors_have_the_diagonal():
    """Of a layer norm: all leave the same there, and the factors beside it."""
    precisions = []
    for name in ("laplace_diagonal", "laplace_kronecker", "laplace_low_rank"):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 8), nn.LayerNorm(8), nn.Linear(8, 10))
        precisions.append(make(name, net, hessian_weight=3.0, epochs=1).train(0).method.past)
    diagonal, kronecker, low_rank = precisions
    for name in ("1.weight", "1.bias"):
        assert diagonal.precision[name].max() > 1.1
        torch.testing.assert_close(diagonal.precision[name], kronecker.precision[name])
        torch.testing.assert_close(diagonal.precision[name], low_rank.precision[name])
    assert kronecker.factors.keys() == {"0", "2"}
    assert kronecker.precision["0.weight"].eq(1).all()
    assert low_rank.factor.keys() == {"0.weight", "0.bias", "2.weight", "2.bias"}


class Unusual(nn.Module):
    """Two layers that share a weight, and one that is used without a call."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight, self.last = self.first.weight, nn.Linear(64, 10)

    def forward(self, x):
        hidden = self.second(self.first(x).tanh()).tanh()
        return linear(hidden, self.last.weight, self.last.bias)


def test_weights_that_have_no_factors_of_their_own_have_the_diagonal():
    torch.manual_seed(0)
    net = Unusual()
    ends = [make(name, deepcopy(net), lr=0.0).train(0) for name in ("laplace_diagonal", KRONECKER)]
    diagonal, kronecker = (end.method.past.precision for end in ends)
    assert diagonal["last.weight"].max() > 1.01
    for name in ("first.weight", "second.bias", "last.weight", "last.bias"):
        torch.testing.assert_close(kronecker[name], diagonal[name])
