"""Measure the memory of this process, and check that images fit into that of this computer."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from vcl_radial.errors import DataError

_RESET_PEAK = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


def reset_peak(device: str) -> None:
    """Start a new measurement of `peak`, where the system can (Linux and CUDA)."""
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(OSError):
        _RESET_PEAK.write_text("5")


def peak(device: str) -> int | None:
    """Most bytes of the GPU, or of this process, since `reset_peak`; None where it is unknown."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated()
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    if sys.platform == "win32":
        return None
    import resource

    # Bytes on macOS, and KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def check_memory(root: Path, images: int, height: int, width: int) -> None:
    """Check the memory for pixels as bytes and as standardised float32.

    Args:
        root: the folder of the images.
        images: number of images.
        height: height of each image in pixels.
        width: width of each image in pixels.

    Raises:
        DataError: the images need more memory than this computer has.
    """
    needed = 15 * images * height * width
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    if needed > total:
        raise DataError(
            f"{images} images of {width}x{height} pixels need {needed / 2**30:.0f} GiB of "
            f"memory, and there are {total / 2**30:.0f}: reduce them with --set stream.image_size=N"
            " (pixels)",
            at=root,
        )
