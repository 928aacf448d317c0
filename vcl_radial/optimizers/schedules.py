"""How learning rates change within a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer

Schedule = Callable[[float], float]
"""The factor of the learning rates, as a function of the share of a task's epochs that is done."""


def constant(done: float) -> float:
    """1, throughout."""
    return 1.0


def cosine(done: float) -> float:
    """(1 + cos(pi done)) / 2, from 1 towards 0 (Loshchilov and Hutter 2017, Eq. 5)."""
    return (1 + math.cos(math.pi * done)) / 2


def one_cycle(done: float) -> float:
    """From 1/25 to 1 over the first 30 %, then towards 0, each along half a cosine.

    After Smith and Topin (2018), with the shares of PyTorch's `OneCycleLR`.
    """
    if done < 0.3:
        return 1 - (1 - 1 / 25) * cosine(done / 0.3)
    return cosine((done - 0.3) / 0.7)


def linear_tail(done: float) -> float:
    """min(1, 2 (1 - done)): constant, then linearly to 0 over the second half."""
    return min(1.0, 2 * (1 - done))


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "one-cycle": one_cycle,
}
"""By the names of a recipe's `schedule`."""


def set_rates(optimizer: Optimizer, schedule: Schedule, share: float) -> None:
    """Set the learning rates to what a schedule has after a share of the epochs.

    Args:
        optimizer: whose groups keep their rates from before any schedule as `task_lr`.
        schedule: their factor.
        share: of the task's epochs that is done.
    """
    if schedule is constant:  # somebody else may schedule them
        return
    factor = schedule(share)
    for group in optimizer.param_groups:
        group["lr"] = factor * group.setdefault("task_lr", group["lr"])
