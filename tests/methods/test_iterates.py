"""SWAG and SGLD: the moments of iterates, draws from them, and what the next task gets."""

import copy
import math

import numpy as np
import pytest
import torch
from scenarios import KnownNoise, Learner, network
from torch import nn
from torch.optim import SGD

from vcl_radial.methods.iterates import Iterates
from vcl_radial.methods.sgld import SGLD
from vcl_radial.methods.swag import SWAG
from vcl_radial.methods.tasks import Batch, Task

both = pytest.mark.parametrize("name", ["swag", "sgld"])


def test_the_moments_are_those_of_numpy():
    torch.manual_seed(0)
    sequence = 5 + torch.randn(17, 3, 2, dtype=torch.float64)
    iterates = Iterates(kept=5)
    for weight in sequence:
        iterates.add({"w": weight})
    np.testing.assert_allclose(iterates.mean["w"], sequence.numpy().mean(0))
    np.testing.assert_allclose(iterates.variance("w"), sequence.numpy().var(0))
    kept = {tuple(row.flatten().tolist()) for row in iterates.rows("w")}
    assert kept == {tuple(row.flatten().tolist()) for row in sequence[-5:]}


def two_weights(kind, **settings):
    """A method whose iterates are 30 correlated pairs of a weight and a bias."""
    torch.manual_seed(1)
    method = kind(nn.Linear(1, 1), likelihood=KnownNoise(1.0), **settings)
    pairs = torch.randn(30, 2) @ torch.tensor([[1.0, 0.8], [0.0, 0.6]])
    for weight, bias in pairs:
        method.iterates.add({"weight": weight.view(1, 1), "bias": bias.view(1)})
    return method, pairs


def drawn(method, samples):
    """Draws of the pair of weights, by the outputs at 0 and 1."""
    bias, both = method.draws(torch.tensor([[0.0], [1.0]]), samples=samples)[..., 0].unbind(-1)
    return torch.stack([both - bias, bias], -1)


def test_swag_draws_with_half_the_diagonal_and_half_the_last_deviations():
    method, pairs = two_weights(SWAG, rank=6)
    deviations = pairs[-6:] - pairs.mean(0)
    expected = (pairs.var(0, correction=0).diag() + deviations.mT @ deviations / 5) / 2
    samples = 3000
    draws = drawn(method, samples)
    error = (expected.diag() / samples).sqrt()
    assert ((draws.mean(0) - pairs.mean(0)).abs() < 4 * error).all()
    # Of a Gaussian, Var(sample covariance) = (C_ij^2 + C_ii C_jj) / S.
    error = ((expected.square() + expected.diag().outer(expected.diag())) / samples).sqrt()
    assert ((draws.mT.cov() - expected).abs() < 4 * error).all()


def test_sgld_draws_whole_iterates():
    method, pairs = two_weights(SGLD, kept=4)
    distances = (drawn(method, 100)[:, None] - pairs[-4:]).norm(dim=-1)
    assert distances.min(1).values.max() < 1e-5
    assert distances.argmin(1).unique().numel() == 4


class Mean(nn.Module):
    """f(x) = w, many times independently: one weight per output row."""

    def __init__(self, chains):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(chains, 1))

    def forward(self, x):
        return self.w[: len(x)]


def test_sgld_samples_the_posterior_of_a_mean():
    """400 chains, whose points are the same: the loss is a mean over chains, and so is the rate."""
    torch.manual_seed(0)
    chains, rate, steps = 400, 0.1, 120
    noise, prior_scale, points = 2.0, 1.0, 8
    y = torch.tensor(1.5)
    precision = 1 / prior_scale**2 + points / noise**2
    network = Mean(chains)
    method = SGLD(
        network,
        likelihood=KnownNoise(noise),
        prior_scale=prior_scale,
        kept=1,
        collect_every=1,
    )
    batch = Batch(torch.zeros(chains, 1), y.expand(chains))
    # The NLL of a chain enters with 1 / chains: N = points * chains gives each its own points.
    task = Task(0, points * chains, lambda: [batch], steps=steps)
    method.begin_task(task)
    optimizer = method.make_optimizer(lambda net: SGD(net.parameters(), lr=rate * chains * points))
    for _ in range(steps):
        method.learn(batch, optimizer)
    samples = method.iterates.last["w"].flatten()
    mean = y * points / noise**2 / precision
    # A step takes eps/2 = rate from the gradient of U, so that it shrinks by 1 - rate * precision.
    variance = 1 / (precision * (1 - rate * precision / 2))
    assert abs(samples.mean() - mean) < 4 * math.sqrt(variance / chains)
    assert abs(samples.var() - variance) < 4 * variance * math.sqrt(2 / chains)
    within = method.iterates.variance("w").mean()
    assert 0.7 * variance < within < 1.1 * variance


@both
def test_what_is_carried_is_the_mean_and_the_inverse_variance(name):
    learner = Learner(name, network(None), batch_size=20, max_curvature=0.3).train(0)
    method = learner.method
    iterates, points = method.iterates, method.task.points
    for weight_name, weight in method.parameters_in_use().items():
        variance = iterates.variance(weight_name)
        assert torch.equal(weight, iterates.mean[weight_name])
        assert torch.equal(method.past.centre[weight_name], weight)
        carried = method.past.precision[weight_name]
        moved = variance > 0
        expected = (1 / variance).clamp(max=0.3 * points)
        torch.testing.assert_close(carried[moved], expected[moved])
        assert not carried[~moved].any()


def test_a_weight_that_does_not_move_keeps_its_precision():
    """Pixels that are black in a task say nothing of their weights."""
    learner = Learner(
        "swag", network(None, multi_head=False), batch_size=20, max_curvature=1e9
    ).train(0)
    past = copy.deepcopy(learner.method.past)
    learner.train(1)
    (name,) = [n for n, w in past.precision.items() if w.dim() == 2 and w.shape[1] == 64]
    still = learner.method.iterates.variance(name) == 0
    assert still.any()
    after = learner.method.past.precision[name]
    assert torch.equal(after[still], past.precision[name][still])
    assert not torch.equal(after[~still], past.precision[name][~still])


@both
def test_iterates_are_collected_after_a_share_of_the_steps(name):
    learner = Learner(name, network(None), batch_size=20, collect_from=0.75, collect_every=3)
    learner.train(0)
    steps = learner.method.task.steps
    (count,) = set(learner.method.iterates.count.values())
    assert steps > 12
    assert count == len(range(int(0.75 * steps), steps, 3))


@both
def test_a_head_of_another_task_is_still_drawn(name):
    learner = Learner(name, network(None), batch_size=20, eval_samples=3).train(0)
    head = {n: v for n, v in learner.method.iterates.squares.items() if "heads.0" in n}
    learner.train(1)
    assert learner.method.resting.keys() == head.keys()
    draws = learner.method.draws(learner.stream.inputs(0, "test"), 0, samples=3)
    assert draws.std(0).max() > 0


@both
def test_in_the_middle_of_a_task_it_resumes_to_the_same_bits(name, tmp_path):
    settings = {"batch_size": 20, "collect_from": 0.2}

    def halfway(learner):
        learner.begin(0)
        return learner.method, learner.method.make_optimizer(
            lambda net: SGD(net.parameters(), lr=0.05)
        )

    straight, optimizer = halfway(Learner(name, network(None), **settings))
    batches = list(Learner(name, network(None), **settings).points(0).split(20))
    torch.manual_seed(3)
    for batch in batches[:9]:
        straight.learn(batch, optimizer)
    torch.save(straight.state_dict(), tmp_path / "state")
    resumed, other = halfway(Learner(name, network(None), **settings))
    resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    for method, steps in ((straight, optimizer), (resumed, other)):
        torch.manual_seed(4)
        for batch in batches[9:]:
            method.learn(batch, steps)
        method.end_task(method.task)
    for key, value in straight.past.precision.items():
        assert torch.equal(value, resumed.past.precision[key])
    x = batches[0].x
    assert torch.equal(straight.predict(x, 0), resumed.predict(x, 0))
