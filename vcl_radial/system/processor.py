"""What a command asks of the CPU that it computes on, for its whole process."""

from __future__ import annotations

import ctypes

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""

_MAPPED_FROM = 2**25
_KEPT = 2**30
"""Bytes. Above the first, small blocks in the gaps of large ones would make the memory grow."""


def prepare(threads: int) -> None:
    """Compute on so many threads, with denormal numbers as 0, and keep the memory that is freed.

    Activations are freed after every step and wanted again in the next. By default glibc gives
    them back to the system, which then fills new pages with zeros. Here a process keeps up to 1 GiB
    that it has freed; blocks of 32 MiB and more, such as data sets, are given back as before.
    """
    # More threads than cores would fight; the count is part of what makes the bytes the same.
    torch.set_num_threads(threads)
    # A network trained to a loss near 0 meets denormal numbers, and they are slow.
    torch.set_flush_denormal(True)
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """See `prepare`; where the C library is not glibc, nothing happens."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library without a name
        return
    mallopt(_MMAP_THRESHOLD, _MAPPED_FROM)
    mallopt(_TRIM_THRESHOLD, _KEPT)
