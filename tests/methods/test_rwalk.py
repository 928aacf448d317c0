"""RWalk: scores of the path relative to the Fisher, and both importances on the same scale."""

import pytest
import torch
from scenarios import ALL, KnownNoise, Learner, copies, network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam

from vcl_radial.methods.rwalk import RWalk, normalised
from vcl_radial.methods.tasks import Batch


class Quadratic:
    """L(w) = 1/2 sum_i h_i (w_i - a_i)^2 + constant, as the mean NLL of a linear model."""

    curvature = torch.tensor([4.0, 1.0, 0.25])
    optimum = torch.tensor([1.0, -2.0, 3.0])

    def __init__(self):
        n = 48
        q = torch.linalg.qr(torch.randn(n, 3, generator=torch.Generator().manual_seed(0)))[0]
        self.x = q * (n * self.curvature).sqrt()
        self.y = self.x @ self.optimum

    def inputs(self, number, part):
        return self.x

    def labels(self, number, part):
        return self.y

    def task_label(self, number):
        return 0

    def loss(self, w):
        return float((self.curvature * (w - self.optimum).square()).sum() / 2)


def on_the_quadratic(kind=RWalk, steps=40, **settings):
    torch.manual_seed(0)
    settings = {"optimizer": SGD, "batch_size": ALL, "epochs": steps, "lr": 0.05} | settings
    net = nn.Linear(3, 1, bias=False)
    return Learner(kind, net, Quadratic(), likelihood=KnownNoise(1.0), **settings)


class Recorded(RWalk):
    """RWalk, with the path integral of each interval."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.integrals = []

    def _close(self):
        self.integrals.append({name: path.clone() for name, path in self.omega.items()})
        super()._close()


def test_the_intervals_sum_to_the_fall_of_the_loss():
    learner = on_the_quadratic(Recorded, steps=400, lr=1e-3)
    problem, weight = learner.stream, learner.network.weight
    before = problem.loss(weight[0].detach())
    learner.train(0)
    fall = before - problem.loss(weight[0].detach())
    assert len(learner.method.integrals) == 40
    total = sum(float(path["weight"].sum()) for path in learner.method.integrals)
    assert fall > 1
    assert total == pytest.approx(fall, rel=0.01)


def test_the_score_is_1_where_the_loss_falls_as_the_fisher_says():
    """From anywhere to the minimum the loss falls by h/2 (w' - w)^2, which is the distance."""
    learner = on_the_quadratic(steps=4000, lr=5e-3, interval=4000, xi=1e-9)
    learner.method.fisher = {"weight": learner.stream.curvature[None].clone()}
    learner.train(0)
    score = learner.method.score["weight"][0]
    torch.testing.assert_close(score, torch.ones(3), rtol=0.02, atol=0)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_fisher_is_a_moving_average_of_squared_gradients(alpha):
    learner = on_the_quadratic(steps=9, interval=3, alpha=alpha)
    problem, w = learner.stream, learner.network.weight[0].detach().clone()
    squares = []
    for _ in range(9):
        gradient = problem.curvature * (w - problem.optimum)
        squares.append(gradient.square())
        w = w - 0.05 * gradient
    first, second, third = torch.stack(squares).view(3, 3, 3).mean(1)
    expected = (1 - alpha) * ((1 - alpha) * first + alpha * second) + alpha * third
    torch.testing.assert_close(learner.train(0).method.fisher["weight"][0], expected)


def test_steps_after_the_last_interval_count_as_a_shorter_one():
    """A task of 5 steps is one of 3 and one of 2 steps."""
    one, other = (on_the_quadratic(Recorded, steps=5, interval=n) for n in (3, 5))
    assert len(one.train(0).method.integrals) == 2
    assert len(other.train(0).method.integrals) == 1


class Followed(RWalk):
    """RWalk, and gradients and weights of each step as somebody outside sees them."""

    def begin_task(self, task):
        super().begin_task(task)
        self.path = []

    def loss(self, batch, outputs):
        nll = cross_entropy(outputs, batch.y)
        named = dict(self.network.named_parameters())
        slopes = torch.autograd.grad(nll, [*named.values()], retain_graph=True, allow_unused=True)
        self.slopes = {n: g for n, g in zip(named, slopes, strict=True) if g is not None}
        return super().loss(batch, outputs)

    def step(self, optimizer):
        before = copies(self.network)
        super().step(optimizer)
        self.path.append((before, self.slopes, copies(self.network)))


@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_the_importances_are_those_of_the_paper(optimizer):
    """In two tasks, with the penalty at work in the second; the last interval is a short one."""
    settings = {"optimizer": optimizer, "lr": 1e-2, "batch_size": 64, "epochs": 2}
    options = {"alpha": 0.8, "interval": 4, "xi": 0.01, "kl_weight": 0.1}
    learner = Learner(Followed, network(None, hidden=(8,)), **settings, **options)
    fisher, total = {}, {}
    for task in range(2):
        method, score = learner.train(task).method, {}
        assert len(method.path) % 4
        for start in range(0, len(method.path), 4):
            steps = method.path[start : start + 4]
            for name in steps[0][1]:
                gains = sum(-g[name] * (after[name] - before[name]) for before, g, after in steps)
                move = steps[-1][2][name] - steps[0][0][name]
                distance = fisher.get(name, 0) * move.square() / 2
                score[name] = score.get(name, 0) + gains.clamp(min=0) / (distance + 0.01)
                mean = sum(g[name].square() for _, g, _ in steps) / len(steps)
                fisher[name] = 0.2 * fisher[name] + 0.8 * mean if name in fisher else mean
        for name, s in score.items():
            total[name] = (total[name] + s) / 2 if name in total else s
        scaled = [
            {n: (v - low) / (high - low) for n, v in values.items()}
            for values in (fisher, total)
            for low in [min(v.min() for v in values.values())]
            for high in [max(v.max() for v in values.values())]
        ]
        for name in score:
            expected = 2 * method.task.points * (scaled[0][name] + scaled[1][name])
            precision = method.past.precision[name]
            torch.testing.assert_close(precision, expected, rtol=1e-3, atol=1e-3)


def test_both_importances_run_from_0_to_1():
    scaled = normalised({"a": torch.tensor([3.0, 7.0]), "b": torch.tensor([5.0, 11.0])})
    assert scaled["a"].tolist() == [0.0, 0.5]
    assert scaled["b"].tolist() == [0.25, 1.0]
    equal = normalised({"a": torch.full((2,), 3.0)})
    assert equal["a"].tolist() == [0.0, 0.0]


def test_stopped_in_an_interval_it_goes_on_to_the_same_bits():
    def steps(method, optimizer, batches):
        for batch in batches:
            method.learn(batch, optimizer)

    def made():
        return Learner(RWalk, network(None, hidden=(8,)), optimizer=SGD, lr=1e-2, interval=4)

    def begun():
        learner = made()
        learner.begin(0)
        return learner, SGD(learner.network.parameters(), lr=1e-2)

    (one, by), (other, by_other) = begun(), begun()
    whole = one.points(0)
    batches = [Batch(whole.x[i : i + 32], whole.y[i : i + 32], 0) for i in range(0, 192, 32)]
    steps(one.method, by, batches)
    stopped, by_stopped = begun()
    steps(stopped.method, by_stopped, batches[:2])
    other.method.load_state_dict(stopped.method.state_dict())
    steps(other.method, by_other, batches[2:])
    for learner in (one, other):
        learner.method.end_task(learner.method.task)
    for name, precision in one.method.past.precision.items():
        assert torch.equal(precision, other.method.past.precision[name])
