"""Seeds that are made of others: independent random numbers for every part of a run."""

from __future__ import annotations

import numpy as np


def seed_of(*numbers: int) -> int:
    """A seed below 2^32 for a sequence of whole numbers from 0, by NumPy's `SeedSequence`.

    Other numbers, or another order of them, give independent random numbers.
    """
    (state,) = np.random.SeedSequence(numbers).generate_state(1)
    return int(state)
