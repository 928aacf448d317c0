"""Check that the penalty is on the suite's scale: nats, which the base class divides by N."""

from __future__ import annotations

import math

from vcl_radial.conformance.penalty_view import BATCHES, PenaltyView
from vcl_radial.conformance.subject import Subject
from vcl_radial.conformance.verdict import Fault


def penalty(subject: Subject) -> str:
    """Check that the penalty is a finite scalar in nats, independent of the batch and of N.

        loss = mean NLL + kl_weight * penalty / N

    so that the expected loss does not change with the batch size. A method whose penalty should
    grow with N states so with the class attribute `penalty_grows_with_points = True`.
    """
    view = subject.penalty
    for look in (_batch_size, _term, _loss):
        look(view)
    _points(view, subject.method.penalty_grows_with_points)
    # If task 1 affects task 2 without a gradient of the penalty, the optimiser applies the prior,
    # as in VOGN.
    if not (view.without_gradient and subject.remembers):
        _gradient(view)
    if not view.present:
        return "the loss does not change with the batch size; penalty() is not used"
    if subject.method.penalty_grows_with_points:
        points = "with N as the class says"
    else:
        points = "for fewer points"
    return (
        f"finite, the same for batches of {BATCHES[0]} and {BATCHES[1]} points and {points}, and "
        "1/N of it in the loss"
    )


def _batch_size(view: PenaltyView) -> None:
    small, large = view.moved.tolist()
    if abs(large - small) > 1e-3 * max(abs(small), abs(large)) + 5 * view.spread:
        raise Fault(
            f"penalty() is {small:.6g} nats with batches of {BATCHES[0]} points and {large:.6g} "
            f"with {BATCHES[1]}, at the same weights: let it depend on the weights alone, not on "
            "the mini-batch or its size (the base class divides by N)"
        )


def _points(view: PenaltyView, may_grow: bool) -> None:
    full, half = float(view.moved[0]), view.moved_half
    if not view.present or full <= 0:
        return
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


def _gradient(view: PenaltyView) -> None:
    slope, quotient = view.slope, view.quotient
    rounding = 1e-5 * abs(float(view.moved[0])) / 0.2
    if abs(slope - quotient) > 0.1 * max(abs(slope), abs(quotient)) + rounding:
        raise Fault(
            f"the gradient of penalty() gives a slope of {slope:.3g} where its values rise by "
            f"{quotient:.3g}: compute it from the weights without no_grad(), .detach() or .data"
        )
    if view.gradient_error > 1e-2:
        raise Fault(
            f"with self.loss_value = False the gradient of penalty() differs by "
            f"{100 * view.gradient_error:.0f} % from that with True: only its value may be left out"
        )


def _term(view: PenaltyView) -> None:
    expected = float(view.moved[0]) / view.points
    rounding = 1e-5 * abs(view.loss) + 5 * view.spread / view.points
    if abs(view.term - expected) > 1e-3 * abs(expected) + rounding:
        raise Fault(
            f"at kl_weight = 1 the loss holds {view.term:.6g} nats per point of the penalty, "
            f"where penalty() / N = {expected:.6g}: let criterion() add kl_weight * "
            "penalty() / N, as the base class does"
        )


def _loss(view: PenaltyView) -> None:
    small, large = view.losses.mean(1).tolist()
    differences = view.losses[0] - view.losses[1]
    error = float(differences.std()) / math.sqrt(len(differences))
    if abs(large - small) > 0.05 * abs(small) + 5 * error:
        raise Fault(
            f"the mean loss of an epoch is {small:.4g} nats per point with batches of {BATCHES[0]} "
            f"points and {large:.4g} with {BATCHES[1]}, at the same weights: take means over the "
            "batch, not sums"
        )
