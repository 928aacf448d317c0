import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from vcl_radial.curvature import Quadratic, diagonal_fisher

SHAPES = {"weight": (3, 4), "bias": (3,)}


def tensors(seed, positive=False):
    generator = torch.Generator().manual_seed(seed)
    drawn = {n: torch.randn(s, generator=generator).double() for n, s in SHAPES.items()}
    return {name: value.square() for name, value in drawn.items()} if positive else drawn


def value_of(importances, anchors, weights):
    """1/2 sum F (w - a)^2, written out."""
    return sum(0.5 * (importances[n] * (weights[n] - anchors[n]) ** 2).sum() for n in weights)


def with_gradient(weights):
    return {name: value.clone().requires_grad_() for name, value in weights.items()}


def test_it_and_its_gradient_are_0_at_the_anchor_and_only_there():
    past = Quadratic()
    past.carry(tensors(0), tensors(1, positive=True))
    for seed, at_anchor in ((0, True), (2, False)):
        weights = with_gradient(tensors(seed))
        penalty = past.penalty(weights)
        penalty.backward()
        assert (penalty.item() == 0) is at_anchor
        assert all((w.grad.abs().max() == 0).item() is at_anchor for w in weights.values())


@pytest.mark.parametrize("value", [True, False])
def test_the_gradient_is_that_of_the_formula_with_the_value_or_without(value):
    anchors, importances = tensors(0), tensors(1, positive=True)
    past = Quadratic()
    past.carry(anchors, importances)
    weights, expected = with_gradient(tensors(2)), with_gradient(tensors(2))
    formula = value_of(importances, anchors, expected)
    penalty = past.penalty(weights, value)
    torch.testing.assert_close(penalty.detach(), formula.detach() * value)
    (7 * penalty).backward()
    (7 * formula).backward()
    for name in SHAPES:
        torch.testing.assert_close(weights[name].grad, expected[name].grad)
        torch.testing.assert_close(7 * past.gradient(weights)[name], expected[name].grad)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.floats(0, 1e3), st.floats(-10, 10)), min_size=4, max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_penalties_that_are_added_are_the_sum_of_all(tasks):
    """Weights without any importance, and importances of 0, included."""
    past, parts = Quadratic(), []
    for task in tasks:
        importances, anchors = torch.tensor(task, dtype=torch.float64).T
        parts.append(({"w": importances}, {"w": anchors}))
        past.add({"w": anchors}, {"w": importances})
    weights = {"w": torch.tensor([0.0, 3.0, -1.0, 20.0], dtype=torch.float64, requires_grad=True)}
    expected = sum(value_of(F, a, weights) for F, a in parts)
    torch.testing.assert_close(torch.as_tensor(past.penalty(weights)), expected)
    (slope,) = torch.autograd.grad(expected, weights["w"])
    torch.testing.assert_close(past.gradient(weights)["w"], slope)


def test_carrying_decays_as_in_progress_and_compress():
    """F*_t = gamma F*_{t-1} + F_t, and gamma F*_{t-1} is what task t meets."""
    past, gamma, total = Quadratic(), 0.7, 0.0
    for task in range(4):
        importances = tensors(task, positive=True)
        past.carry(tensors(10 + task), importances, gamma)
        total = gamma * total + importances["weight"]
        torch.testing.assert_close(past.precision["weight"], gamma * total)
        torch.testing.assert_close(past.centre, tensors(10 + task))


def test_replacing_forgets_what_was_there():
    past = Quadratic()
    past.add(tensors(0), tensors(1, positive=True))
    past.add(tensors(2), tensors(3, positive=True))
    assert past.constant > 0
    past.replace(tensors(4), tensors(5, positive=True))
    torch.testing.assert_close(
        past.penalty(tensors(6)), value_of(tensors(5, positive=True), tensors(4), tensors(6))
    )


def test_a_negative_importance_takes_away_and_leaves_no_negative_precision():
    past = Quadratic()
    weights = {"w": torch.zeros(3)}
    past.carry(weights, {"w": torch.tensor([2.0, 2.0, -1.0])})
    past.carry(weights, {"w": torch.tensor([-0.5, -3.0, 4.0])})
    torch.testing.assert_close(past.precision["w"], torch.tensor([1.5, 0.0, 4.0]))


def test_what_it_has_no_name_for_is_free():
    past = Quadratic()
    assert past.penalty(tensors(0)) == 0
    past.carry({"weight": tensors(0)["weight"]}, {"weight": tensors(1, positive=True)["weight"]})
    weights = with_gradient(tensors(2))
    past.penalty(weights).backward()
    assert weights["weight"].grad is not None
    assert weights["bias"].grad is None


def test_anchors_are_copies():
    """The weights move on, in place; the anchor and what was saved do not."""
    past, weights = Quadratic(), tensors(0)
    for store in (past.carry, past.add, past.replace):
        store(weights, tensors(1, positive=True))
        saved = past.state_dict()
        before = {name: value.clone() for name, value in past.centre.items()}
        for value in weights.values():
            value.add_(1)
        torch.testing.assert_close(past.centre, before, rtol=0, atol=0)
        store(weights, tensors(2, positive=True))
        torch.testing.assert_close(saved["centre"], before, rtol=0, atol=0)


def test_its_state_comes_back_bit_for_bit_without_unpickling(tmp_path):
    past = Quadratic()
    past.add(tensors(0), tensors(1, positive=True))
    past.add(tensors(2), tensors(3, positive=True))
    torch.save(past.state_dict(), tmp_path / "state")
    again = Quadratic()
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert again.penalty(tensors(4)).item() == past.penalty(tensors(4)).item()


# What the quadratic is for: the loss of a finished task, to second order.


def orthogonal_regression(seed):
    """A task of linear regression with unit noise with uncorrelated inputs: a diagonal Fisher."""
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(12, 4, generator=generator).double()
    x = torch.linalg.qr(draw).Q * torch.rand(4, generator=generator).double().add(0.2)
    return x, torch.randn(12, generator=generator).double()


def squared_error(task, w):
    x, y = task
    return 0.5 * (x @ w - y).square().sum()


def minimum(task, past):
    """The minimum of the loss with its penalty, by a Newton step: both are diagonal quadratics."""
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    loss = squared_error(task, w) + past.penalty({"w": w})
    (slope,) = torch.autograd.grad(loss, w)
    curvature = task[0].square().sum(0) + past.precision.get("w", torch.zeros(4))
    return (w - slope / curvature).detach()


@pytest.mark.parametrize("how", ["carry", "add"])
def test_the_tasks_of_a_linear_regression_one_by_one_are_the_tasks_together(how):
    tasks = [orthogonal_regression(seed) for seed in range(4)]
    past = Quadratic()
    for task in tasks:
        w = minimum(task, past)
        if how == "carry":  # the anchor: the minimum with the penalty
            past.carry({"w": w}, {"w": task[0].square().sum(0)})
        else:  # a penalty of its own is the task's own loss: the anchor is its own minimum
            past.add({"w": minimum(task, Quadratic())}, {"w": task[0].square().sum(0)})
    x, y = (torch.cat(parts) for parts in zip(*tasks, strict=True))
    together = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    torch.testing.assert_close(w, together)


@pytest.mark.parametrize("how", ["carry", "add"])
def test_with_a_quadratic_loss_the_penalty_is_the_rise_of_the_loss(how):
    task = orthogonal_regression(0)
    past = Quadratic()
    w = minimum(task, past)
    getattr(past, how)({"w": w}, {"w": task[0].square().sum(0)})
    elsewhere = torch.tensor([1.0, -2.0, 0.3, 5.0]).double()
    rise = squared_error(task, elsewhere) - squared_error(task, w)
    torch.testing.assert_close(past.penalty({"w": elsewhere}), rise)


def test_the_penalty_of_logistic_regression_is_the_second_order_term_of_its_loss():
    """Along each weight: L(w + e) + L(w - e) - 2 L(w) = 2 R(w + e) up to O(e^4)."""
    torch.manual_seed(0)
    x, y, step = torch.randn(40, 4).double(), torch.randint(3, (40,)), 1e-3
    network = nn.Linear(4, 3).double()
    weights = {name: value.detach().clone() for name, value in network.named_parameters()}
    past = Quadratic()
    fisher = diagonal_fisher(network, dict(network.named_parameters()), [((x,), y)], "predictive")
    past.carry(weights, fisher)

    def loss(weights):
        return cross_entropy(x @ weights["weight"].T + weights["bias"], y, reduction="sum")

    for name, shape in SHAPES.items():
        for place in range(weights[name].numel()):
            shift = torch.zeros(shape, dtype=torch.float64)
            shift.view(-1)[place] = step
            up, down = ({**weights, name: weights[name] + s * shift} for s in (1, -1))
            second = loss(up) + loss(down) - 2 * loss(weights)
            assert 2 * past.penalty(up).item() == pytest.approx(second.item(), rel=1e-4)
