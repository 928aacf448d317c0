"""The seeds of a trainer's random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch

from vcl_radial.likelihoods.predict import seeded_rng
from vcl_radial.system.seeds import isolated_rng, seed_of

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


@contextmanager
def drawing_from(seed: int | None, device: torch.device) -> Iterator[bool]:
    """Seed the generators of Python, NumPy and PyTorch inside, and restore them afterwards.

    With None they stay as they are. Yields whether there is a seed.
    """
    if seed is None:
        yield False
        return
    with isolated_rng(), seeded_rng(seed, device):
        # A user's method may draw from any of them.
        random.seed(seed)
        np.random.seed(seed)
        yield True
