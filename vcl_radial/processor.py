"""What a command asks of the CPU that it computes on, for its whole process."""

from __future__ import annotations

import ctypes

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""

_MAPPED_FROM = 2**28
_KEPT = 2**30
_OLD_LIMIT = 2**25
"""Bytes; glibc before 2.35 takes no higher threshold for mapped blocks."""


def prepare(threads: int) -> None:
    """Compute on so many threads, with denormal numbers as 0, and keep the memory that is freed.

    Activations are freed after every step and wanted again in the next. By default glibc gives
    blocks of their size back to the system, which then fills them with zeros page by page: a
    quarter of the time of a forward pass over photographs. Here a process keeps up to 1 GiB that
    it has freed; blocks of 256 MiB and more, such as data sets, are given back as before.
    """
    # More threads than cores would fight; the count is part of what makes the bytes the same.
    torch.set_num_threads(threads)
    # A network trained to a loss near 0 meets denormal numbers, and they are slow.
    torch.set_flush_denormal(True)
    keep_freed_memory()


def keep_freed_memory() -> None:
    """See `prepare`; where the C library is not glibc, nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library without a name
        return
    if not mallopt(_MMAP_THRESHOLD, _MAPPED_FROM):
        mallopt(_MMAP_THRESHOLD, _OLD_LIMIT)
    mallopt(_TRIM_THRESHOLD, _KEPT)
