"""How learning rates fall within a task."""

from __future__ import annotations

import math
from collections.abc import Callable

Schedule = Callable[[float], float]
"""The factor of the learning rates, as a function of the share of a task's epochs that is done."""


def constant(done: float) -> float:
    """1, throughout."""
    return 1.0


def cosine(done: float) -> float:
    """(1 + cos(pi done)) / 2, from 1 towards 0 (Loshchilov and Hutter 2017, Eq. 5)."""
    return (1 + math.cos(math.pi * done)) / 2


SCHEDULES: dict[str, Schedule] = {"constant": constant, "cosine": cosine}
"""By the names of a recipe's `schedule`."""
