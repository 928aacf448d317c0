"""Seeds of the training on a split of a table."""

from __future__ import annotations

from vcl_radial.system.seeds import seed_of


def derived(seed: int, purpose: str) -> int:
    """A different seed for each purpose."""
    return seed_of(seed, *purpose.encode())


def split_seed(split: int) -> int:
    """The seed of all random numbers in the training on a split."""
    return derived(0, f"split {split}")
