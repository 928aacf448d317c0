"""The seeds of a trainer's random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from vcl_radial.system.seeds import seed_of

Purpose = Literal["task", "begin", "epoch", "end"]

SeedOf = Callable[[Purpose, int, int], int | None]
"""The seed for a purpose, a task (from 0) and an epoch (from 0); with None the generator is not
seeded. "task" seeds a whole task, the other purposes seed its parts."""


def seeds(seed: int) -> SeedOf:
    """Seeds of every part of every task, from one seed."""
    purposes = ("begin", "epoch", "end")

    def seed_for(purpose: Purpose, task: int, epoch: int) -> int | None:
        if purpose == "task":
            return None
        return seed_of(seed, task, purposes.index(purpose), epoch)

    return seed_for
