"""Checks of a method's penalty during training, the same on every track.

`vcl-radial check` tests more. These cost almost nothing, and end a run with one line where it would
otherwise continue as if there were no penalty.
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
    """Check that the penalty is one number with a gradient: where a task starts, and after a step.

    Args:
        method: method whose task has begun.
        number: number of the task, from 0.

    Raises:
        UserError: it is not; the message names the class, the value and the fix.
        Diverged: the penalty is not finite where the task starts.
    """

    def __init__(self, method: Method, number: int) -> None:
        self._method, self._task = method, f"task {number + 1}"
        self._stepped = False
        self.look("at the start of")

    def after_step(self) -> None:
        """Check again after the first step: at the last task's weights many penalties are 0.

        A penalty that is not finite by then is left to the check of the loss: the step may be too
        long.
        """
        if not self._stepped:
            self._stepped = True
            self._penalty()

    def look(self, when: str) -> Any:
        """The checked penalty; 0 if it cannot be computed at this moment.

        Args:
            when: what precedes "task 2" in the message, such as "at the start of".
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
        # A penalty that needs more than the weights fails here, and training reports its error.
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
        method: method that has learned nothing; its first task may have begun.

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
    """The fault of a penalty that is neither one number with a gradient nor 0; None without one.

    Args:
        penalty: return value of `penalty()`, while gradients are recorded.
        gradient_elsewhere: whether its gradient may be in the step or in the optimiser.
    """
    if isinstance(penalty, Tensor):
        if penalty.numel() != 1:
            return f"gives shape {tuple(penalty.shape)}: sum it to one number"
        value = float(penalty.detach())
        # A 0 without a gradient loses nothing; another check reports what is not finite.
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
