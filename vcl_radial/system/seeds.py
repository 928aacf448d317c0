"""Derive seeds from other seeds, for independent random numbers in every part of a run."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def seed_of(*numbers: int) -> int:
    """A seed below 2^32 for a sequence of whole numbers from 0, by NumPy's `SeedSequence`.

    Different sequences give seeds of independent random numbers.
    """
    (state,) = np.random.SeedSequence(numbers).generate_state(1)
    return int(state)


@contextmanager
def isolated_rng() -> Iterator[None]:
    """Restore the states of Python's, NumPy's and PyTorch's generators at the end.

    PyTorch's number of threads is restored, too. PyTorch is not imported for this.
    """
    python, numpy, torch = random.getstate(), np.random.get_state(), sys.modules.get("torch")
    if torch is not None:
        state, threads = torch.get_rng_state(), torch.get_num_threads()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        if torch is not None:
            torch.set_rng_state(state)
            torch.set_num_threads(threads)
