"""Check that the penalty is on the suite's scale: nats, which the base class divides by N."""

from __future__ import annotations

import math

from vcl_radial.conformance.penalty import BATCHES, Penalty, norm
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault


def penalty(subject: Subject) -> str:
    """Check that the penalty is a finite scalar in nats, independent of the batch and of N.

        loss = mean NLL + kl_weight * penalty / N

    so that the expected loss does not change with the batch size. A method whose penalty should
    grow with N states so with the class attribute `penalty_grows_with_points = True`.
    """
    view = subject.penalty
    grows = subject.method.penalty_grows_with_points
    small, large = view.moved
    value = float(small.mean())
    error = float((small.var() / len(small) + large.var() / len(large)).sqrt())
    _batch_size(value, float(large.mean()), 5 * error)
    _term(view, value / view.points, 5 * error / view.points)
    _loss(view)
    if view.present and value > 0:
        halved = Penalty(subject.trial(halved=True))
        _points(value, float(halved.moved[0].mean()), grows)
    # A penalty without a gradient whose past affects task 2 is applied by the optimiser, as in
    # VOGN.
    if not (view.present and view.slope == 0 and subject.remembers):
        _gradient(view, 1e-5 * abs(value))
    if not view.present:
        return "the loss does not change with the batch size; penalty() is not used"
    return (
        f"finite, the same for batches of {BATCHES[0]} and {BATCHES[1]} points and "
        f"{'with N as the class says' if grows else 'for fewer points'}, and 1/N of it in the loss"
    )


def _batch_size(small: float, large: float, error: float) -> None:
    if abs(large - small) > 1e-3 * max(abs(small), abs(large)) + error:
        raise Fault(
            f"penalty() is {small:.6g} nats with batches of {BATCHES[0]} points and {large:.6g} "
            f"with {BATCHES[1]}, at the same weights: let it depend on the weights alone, not on "
            "the mini-batch or its size (the base class divides by N)"
        )


def _points(full: float, half: float, may_grow: bool) -> None:
    values = (
        f"penalty() is {full:.6g} nats, but {half:.6g} when task 2 has half as many points, at the "
        "same weights: "
    )
    if half > 1.3 * full:
        raise Fault(f"{values}it is divided by N already; leave that to the base class")
    if full > 1.3 * half and not may_grow:
        raise Fault(
            f"{values}the base class divides by N, and a factor of N undoes that (if that is "
            "meant, say so in the class: penalty_grows_with_points = True)"
        )


def _gradient(view: Penalty, rounding: float) -> None:
    values = []
    for times in (0.9, 1.1):
        view.go_to(times)
        values.append(view.value())
    slope, quotient = view.slope, (values[1] - values[0]) / 0.2
    if abs(slope - quotient) > 0.1 * max(abs(slope), abs(quotient)) + rounding / 0.2:
        raise Fault(
            f"the gradient of penalty() gives a slope of {slope:.3g} where its values rise by "
            f"{quotient:.3g}: compute it from the weights without no_grad(), .detach() or .data"
        )
    view.go_to(1.0)
    gradient = view.gradient()
    view.method.loss_value = False
    without_value = view.gradient()
    view.method.loss_value = True
    distance = norm({name: without_value[name] - g for name, g in gradient.items()})
    if distance > 1e-2 * max(norm(gradient), 1e-30):
        raise Fault(
            f"with self.loss_value = False the gradient of penalty() differs by "
            f"{100 * distance / norm(gradient):.0f} % from that with True: only its value may be "
            "left out"
        )


def _term(view: Penalty, expected: float, error: float) -> None:
    view.go_to(1.0)
    loss = view.loss(1.0)
    term = loss - view.loss(0.0)
    if abs(term - expected) > 1e-3 * abs(expected) + 1e-5 * abs(loss) + error:
        raise Fault(
            f"at kl_weight = 1 the loss holds {term:.6g} nats per point of the penalty, "
            f"where penalty() / N = {expected:.6g}: let criterion() add kl_weight * "
            "penalty() / N, as the base class does"
        )


def _loss(view: Penalty) -> None:
    small, large = map(view.losses, BATCHES)
    error = float((small - large).std()) / math.sqrt(len(small))
    if abs(large.mean() - small.mean()) > 0.05 * abs(small.mean()) + 5 * error:
        raise Fault(
            f"the mean loss of an epoch is {small.mean():.4g} nats per point with batches of "
            f"{BATCHES[0]} points and {large.mean():.4g} with {BATCHES[1]}, at the same weights: "
            "take means over the batch, not sums"
        )
