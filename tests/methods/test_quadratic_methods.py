"""L2, EWC, SI and MAS: one quadratic around the weights, and what each puts into it."""

import copy

import pytest
import torch
from scenarios import ALL, QUADRATIC, Learner, copies, network
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam

from vcl_radial.curvature import diagonal_fisher, output_sensitivity
from vcl_radial.methods.si import SI
from vcl_radial.nn import parameters_in_use

every = pytest.mark.parametrize("name", QUADRATIC)


def make(name, multi_head=True, **settings):
    settings = {"kl_weight": QUADRATIC[name], "batch_size": 100} | settings
    return Learner(name, network(None, multi_head), **settings)


@every
def test_the_stronger_the_less_the_body_moves(name):
    """Measured by the method's own penalty, on which the strength has its grip."""
    moved = []
    for factor in (0.0, 1.0, 100.0):
        learner = make(name, lr=3e-3).train(0)
        past = copy.deepcopy(learner.method.past)
        learner.method.kl_weight = factor * QUADRATIC[name]
        learner.epochs = 5
        learner.train(1)
        moved.append(float(past.penalty(learner.parameters())))
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 2 * moved[-1] > 0


@every
def test_a_head_keeps_its_anchor_and_those_to_come_are_free(name):
    """The head of task 4 is made early, by an evaluation: it owes nothing to where it was."""
    learner = make(name).train(0)
    learner.predictions(3)
    past = learner.method.past
    centre, precision = dict(past.centre), dict(past.precision)
    learner.train(1, 2)
    assert {n.split(".")[2] for n in past.precision if "heads" in n} == {"0", "1", "2"}
    for n, anchor in centre.items():
        assert torch.equal(past.centre[n], anchor) == ("heads.0." in n)
        assert "heads.0." not in n or torch.equal(past.precision[n], precision[n])
    free = {n: value for n, value in learner.parameters().items() if "heads.3." in n}
    assert free
    assert past.penalty(free) == 0


@every
def test_one_head_for_all_is_anchored_as_a_whole(name):
    learner = make(name, multi_head=False).train(0, 1)
    past, here = learner.method.past, learner.parameters()
    assert past.precision.keys() == here.keys()
    if name != "ewc_separate":
        assert all(torch.equal(past.centre[n], w) for n, w in here.items())


# What each of them remembers.


def remembered(learner, task, kind=None):
    """The Fisher information of a task's points, or without a kind the outputs' sensitivity."""
    weights = parameters_in_use(learner.network, [task])
    whole = learner.points(task)
    points = [((whole.x, task), whole.y)]
    if kind is None:
        return output_sensitivity(learner.network, weights, points)
    return diagonal_fisher(learner.network, weights, points, kind)


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["empirical", "predictive"])
@pytest.mark.parametrize("batch_size", [7, ALL])
def test_ewc_remembers_the_fisher_summed_over_all_points_whatever_the_batches(kind, batch_size):
    learner = make("ewc", fisher=kind, batch_size=batch_size).train(0)
    close(learner.method.past.precision, remembered(learner, 0, kind))


@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_online_ewc_decays_what_is_older(gamma):
    learner = make("ewc", gamma=gamma).train(0)
    old = remembered(learner, 0, "empirical")
    new = remembered(learner.train(1), 1, "empirical")
    for name, precision in learner.method.past.precision.items():
        # The head of task 1 is not used by task 2.
        close(
            precision, gamma * (new.get(name, 0) + (gamma if name in new else 1) * old.get(name, 0))
        )


def test_separate_ewc_is_the_sum_of_a_penalty_for_each_task():
    learner, terms = make("ewc_separate"), []
    for task in range(3):
        learner.train(task)
        terms.append((remembered(learner, task, "empirical"), learner.parameters()))
    here = {name: w + 0.1 * torch.randn_like(w) for name, w in learner.parameters().items()}
    expected = sum(
        0.5 * (F[name] * (here[name] - anchor[name]).square()).sum()
        for F, anchor in terms
        for name in F
    )
    close(learner.method.past.penalty(here), expected)


def test_mas_remembers_the_sum_of_the_sensitivities_of_all_tasks():
    learner, total = make("mas"), {}
    for task in range(2):
        for name, omega in remembered(learner.train(task), task).items():
            total[name] = total.get(name, 0) + 2 * omega
    close(learner.method.past.precision, total)


def test_l2_has_one_anchor_and_importances_of_1():
    learner = make("l2").train(0, 1, 2)
    moved = {name: value + 0.5 for name, value in learner.parameters().items()}
    expected = 0.5 * 0.25 * len(learner.weights())
    assert learner.method.past.penalty(moved).item() == pytest.approx(expected, rel=1e-5)


# The path integral of SI. With the whole task as one batch a step descends the loss itself.


def mean_nll(learner, task):
    with torch.no_grad():
        x, y, label = learner.points(task)
        return cross_entropy(learner.network(x, label), y).item()


def total(learner):
    return sum(omega.sum().item() for omega in learner.method.omega.values())


@pytest.mark.parametrize(("optimizer", "lr"), [(SGD, 1e-3), (Adam, 1e-5)])
def test_the_omegas_sum_to_the_fall_of_the_loss(optimizer, lr):
    """For small steps: what the weights contributed is what was gained (Zenke et al., Eq. 3)."""
    learner = Learner(SI, network(None), batch_size=ALL, epochs=300, optimizer=optimizer, lr=lr)
    learner.adapt(0)
    before = mean_nll(learner, 0)
    fall = before - mean_nll(learner.train(0), 0)
    assert fall > 0.02
    assert total(learner) == pytest.approx(fall, rel=0.02)


def test_the_penalty_has_no_part_in_the_omegas():
    """The loss without the penalty is what counts, while the penalty bends the path."""
    settings = {"optimizer": SGD, "batch_size": ALL, "epochs": 100, "kl_weight": 1e4}
    learner = Learner(SI, network(None), **settings).train(0)
    learner.adapt(1)
    with torch.no_grad():  # far from the anchor, so that the penalty is all that pulls
        for weight in learner.network.body.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    before = mean_nll(learner, 1)
    penalty = learner.method.past.penalty(learner.parameters()).item()
    fall = before - mean_nll(learner.train(1), 1)
    assert 1e4 / len(learner.points(1).y) * penalty > 10 * abs(fall)
    assert total(learner) == pytest.approx(fall, rel=0.05, abs=0.002)


class Followed(SI):
    """SI, and the path integral as somebody outside sees it."""

    def begin_task(self, task):
        super().begin_task(task)
        self.start, self.path = copies(self.network), {}

    def loss(self, batch, outputs):
        nll = cross_entropy(outputs, batch.y)
        named = dict(self.network.named_parameters())
        slopes = torch.autograd.grad(nll, [*named.values()], retain_graph=True, allow_unused=True)
        self.slopes = {n: g for n, g in zip(named, slopes, strict=True) if g is not None}
        return super().loss(batch, outputs)

    def step(self, optimizer):
        before = copies(self.network)
        super().step(optimizer)
        for name, weight in copies(self.network).items():
            if name in self.slopes:
                worth = -self.slopes[name] * (weight - before[name])
                self.path[name] = self.path.get(name, 0) + worth


@pytest.mark.parametrize("batch_size", [32, ALL])
@pytest.mark.parametrize("optimizer", [SGD, Adam])
def test_the_importances_are_the_damped_path_integrals(optimizer, batch_size):
    """With the penalty at work in task 2."""
    settings = {"optimizer": optimizer, "lr": 1e-2, "batch_size": batch_size, "epochs": 3}
    learner, expected = Learner(Followed, network(None), xi=0.03, **settings), {}
    for task in range(2):
        method, end = learner.train(task).method, learner.parameters()
        for name, path in method.path.items():
            moved = end[name] - method.start[name]
            new = 2 * method.task.points * path / (moved.square() + 0.03)
            expected[name] = (expected.get(name, 0) + new).clamp(min=0)
        assert method.past.precision.keys() == expected.keys()
        for name, precision in method.past.precision.items():
            torch.testing.assert_close(precision, expected[name], rtol=1e-3, atol=1e-3)
            assert precision.max() > 0
