"""Settings of the processor and the memory for a whole process."""

from __future__ import annotations

import ctypes
import time

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""

_MAPPED_FROM = 2**25
_KEPT = 2**30
"""Sizes in bytes. With a larger `_MAPPED_FROM`, small blocks between large ones waste memory."""


def prepare(threads: int) -> None:
    """Set the number of threads, treat denormal numbers as 0, and keep freed memory.

    Activations are freed after every step and are needed again in the next step. By default glibc
    returns them to the system, which then fills new pages with zeros. With these settings a process
    keeps up to 1 GiB of freed memory; blocks of 32 MiB and more, such as data sets, are returned as
    before.
    """
    # More threads than cores slow each other down; results are bit-equal only for equal numbers of
    # threads.
    torch.set_num_threads(threads)
    # A network trained to a loss near 0 meets denormal numbers, and they are slow.
    torch.set_flush_denormal(True)
    _keep_freed_memory()


def clock(device: str) -> float:
    """Seconds: on a CPU those of the threads at work, which other programs do not change."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time() / torch.get_num_threads()


def _keep_freed_memory() -> None:
    """Set glibc's memory parameters (see `prepare`); other C libraries are left as they are."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library without a name
        return
    mallopt(_MMAP_THRESHOLD, _MAPPED_FROM)
    mallopt(_TRIM_THRESHOLD, _KEPT)
