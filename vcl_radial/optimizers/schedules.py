"""Schedules of learning rates within a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer

Schedule = Callable[[float], float]
"""Maps progress, the finished share of a task's epochs, to the factor of the learning rates."""


def constant(progress: float) -> float:
    """The constant factor 1."""
    return 1.0


def cosine(progress: float) -> float:
    """(1 + cos(pi progress)) / 2, from 1 towards 0 (Loshchilov and Hutter 2017, Eq. 5)."""
    return (1 + math.cos(math.pi * progress)) / 2


def one_cycle(progress: float) -> float:
    """Rise from 1/25 to 1 over the first 30 %, then fall towards 0, both along half a cosine.

    After Smith and Topin (2018), with the shares of PyTorch's `OneCycleLR`.
    """
    if progress < 0.3:
        return 1 - (1 - 1 / 25) * cosine(progress / 0.3)
    return cosine((progress - 0.3) / 0.7)


def linear_tail(progress: float) -> float:
    """min(1, 2 (1 - progress)): constant, then linear to 0 over the second half."""
    return min(1.0, 2 * (1 - progress))


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "one-cycle": one_cycle,
}
"""The schedules by their names in a recipe's `schedule`."""


def set_rates(optimizer: Optimizer, schedule: Schedule, share: float) -> None:
    """Set the learning rates of a schedule after a share of the epochs.

    Args:
        optimizer: the optimiser; its groups keep their unscheduled rates as `task_lr`.
        schedule: the factor of the rates.
        share: the finished share of the task's epochs.
    """
    if schedule is constant:  # the user's own scheduler may set the rates
        return
    factor = schedule(share)
    for group in optimizer.param_groups:
        group["lr"] = factor * group.setdefault("task_lr", group["lr"])
