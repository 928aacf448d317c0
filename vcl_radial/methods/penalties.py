"""What is looked at of a method's penalty while it is trained, on every track alike.

`vcl-radial check` looks closer; this costs next to nothing, and ends a run with a line where it
would go on as if there were no penalty.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.methods.base import Method
from vcl_radial.nn import variational_weights


class PenaltyUpkeep:
    """See that the penalty is one number with a gradient: where a task starts, and after a step.

    Args:
        method: whose task has begun.
        number: of the task, from 0.

    Raises:
        UserError: it is not; names the class, what it gives and the mend.
        Diverged: it is no finite number where the task starts.
    """

    def __init__(self, method: Method, number: int) -> None:
        self._method, self._task = method, f"task {number + 1}"
        self._stepped = False
        self.look("at the start of")

    def after_step(self) -> None:
        """Look again after the first step: at the weights of the last task many a penalty is 0.

        What is not finite by then is left to whoever looks at the loss: the step may be too long.
        """
        if not self._stepped:
            self._stepped = True
            self._penalty()

    def look(self, when: str) -> Any:
        """What `penalty` gives now; 0 where it cannot be asked at this moment.

        Args:
            when: before the words "task 2", for what is said.
        """
        penalty = self._penalty()
        value = float(torch.as_tensor(penalty).detach())
        if not math.isfinite(value):
            source = source_of(self._method)
            stores = "end_task()" if isinstance(source, Method) else "consolidate()"
            raise Diverged(
                f"penalty() of {type(source).__name__} is {value} {when} {self._task}: look at "
                f"what it reads and what {stores} stores, or try a smaller learning_rate"
            )
        return penalty

    def _penalty(self) -> Any:
        # Where it asks for more than the weights it fails here, and is heard of in its place.
        penalty = _penalty_of(self._method, otherwise=0)
        source = source_of(self._method)
        # That of frozen weights is a constant.
        frozen = not all(weight.requires_grad for weight in self._method.network.parameters())
        if wrong := malformed(penalty, source.gradient_elsewhere or frozen):
            raise UserError(f"penalty() of {type(source).__name__} {wrong}")
        return penalty


def check_kl(method: Method) -> None:
    """See that a posterior that is trained has its KL in the objective; before a first task.

    Args:
        method: that has learned nothing yet, before or after its first task has begun.

    Raises:
        UserError: it is 0 where it starts; names the class and the mend.
    """
    if not list(variational_weights(method.network, [])):
        return
    with torch.no_grad():
        penalty = _penalty_of(method, otherwise=None)
    one_number = penalty.numel() == 1 if isinstance(penalty, Tensor) else _is_plain(penalty)
    if one_number and not float(penalty):
        source = source_of(method)
        heads = "self.heads" if isinstance(source, Method) else "self.tasks"
        raise UserError(
            f"{type(source).__name__} trains a network with a posterior, and its penalty() has no "
            f"KL to the prior: set posterior = 'none', or add kl_divergence(self.network, {heads}) "
            "of vcl_radial.nn"
        )


def malformed(penalty: Any, gradient_elsewhere: bool = False) -> str | None:
    """What is wrong with what `penalty()` gives, if it is not one number with a gradient, nor 0.

    Args:
        penalty: what `penalty()` gives, while gradients are recorded.
        gradient_elsewhere: whether its gradient may be in the step or in the optimiser.
    """
    if isinstance(penalty, Tensor):
        if penalty.numel() != 1:
            return f"gives shape {tuple(penalty.shape)}: sum it to one number"
        value = float(penalty.detach())
        # Of 0 without a gradient nothing is lost, and what is not finite has a line of its own.
        if penalty.requires_grad or gradient_elsewhere or not value or not math.isfinite(value):
            return None
        return (
            f"gives {value:.6g} without a gradient: compute it from the weights without "
            "no_grad(), .detach() or .data"
        )
    if not _is_plain(penalty):
        return f"gives {type(penalty).__name__}: return one number as a tensor"
    return f"gives {penalty:.6g} as a plain number, which has no gradient" if penalty else None


def source_of(method: Method) -> Any:
    """Who states the penalty of a method: itself, or a user's strategy that drives it."""
    source = getattr(method.penalty, "__self__", method)
    return source if hasattr(source, "gradient_elsewhere") else method


def _penalty_of(method: Method, otherwise: Any) -> Any:
    """What `penalty` gives with its value, or something else where it fails."""
    penalty = otherwise
    loss_value, method.loss_value = method.loss_value, True
    with suppress(Exception), seeded_rng(0, method.device):
        penalty = method.penalty()
    method.loss_value = loss_value
    return penalty


def _is_plain(penalty: Any) -> bool:
    return isinstance(penalty, int | float)
