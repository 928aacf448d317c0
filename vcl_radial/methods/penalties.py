"""Checks of a method's penalty during training, the same on every track.

`vcl-radial check` tests more. These checks cost almost nothing, and stop a run with one line if it
would otherwise continue as if there were no penalty.
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
    """Check that the penalty is a scalar with a gradient, at a task's start and after a step.

    Args:
        method: method whose task has begun.
        number: number of the task, from 0.

    Raises:
        UserError: it is not; the message names the class, the value and the fix.
        Diverged: the penalty is not finite at the start of the task.
    """

    def __init__(self, method: Method, number: int) -> None:
        self._method, self._task = method, f"task {number + 1}"
        self._stepped = False
        self.look("at the start of")

    def after_step(self) -> None:
        """Check again after the first step, because many penalties are 0 before it.

        If the penalty is then not finite, the check of the loss reports it: the step may be too
        long.
        """
        if not self._stepped:
            self._stepped = True
            self._penalty()

    def look(self, when: str) -> Any:
        """The checked penalty; 0 if it cannot be computed at this moment.

        Args:
            when: the words before "task 2" in the message, such as "at the start of".
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
        # A penalty that needs more than the weights raises here, and training reports the error.
        penalty = _penalty_of(self._method, default=0)
        source = source_of(self._method)
        # The penalty of frozen weights is a constant.
        frozen = not all(weight.requires_grad for weight in self._method.network.parameters())
        if fault := malformed(penalty, source.gradient_elsewhere or frozen):
            raise UserError(f"penalty() of {type(source).__name__} {fault}")
        return penalty


def check_kl(method: Method) -> None:
    """Check that the objective of a posterior contains its KL, before the first task.

    Args:
        method: a method without finished tasks; its first task may have begun.

    Raises:
        UserError: the penalty is 0; the message names the class and the fix.
    """
    if not list(variational_weights(method.network, [])):
        return
    with torch.no_grad():
        penalty = _penalty_of(method, default=None)
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
    """Describe a penalty that is neither a scalar with a gradient nor 0; None if it is valid.

    Args:
        penalty: return value of `penalty()`, while gradients are recorded.
        gradient_elsewhere: whether the step or the optimiser may add the gradient.
    """
    if isinstance(penalty, Tensor):
        if penalty.numel() != 1:
            return f"gives shape {tuple(penalty.shape)}: sum it to one number"
        value = float(penalty.detach())
        # A 0 without a gradient is harmless; another check reports values that are not finite.
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
    """The object that defines a method's penalty: the method, or a user's strategy around it."""
    source = getattr(method.penalty, "__self__", method)
    return source if hasattr(source, "gradient_elsewhere") else method


def _penalty_of(method: Method, default: Any) -> Any:
    """A method's penalty with its value, or a default if it fails."""
    penalty = default
    loss_value, method.loss_value = method.loss_value, True
    with suppress(Exception), seeded_rng(0, method.device):
        penalty = method.penalty()
    method.loss_value = loss_value
    return penalty


def _is_plain(penalty: Any) -> bool:
    return isinstance(penalty, int | float)
