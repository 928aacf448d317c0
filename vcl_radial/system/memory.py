"""Whether images fit into this computer's memory, known before any is decoded."""

from __future__ import annotations

import os
from pathlib import Path

from vcl_radial.errors import DataError


def check_memory(root: Path, images: int, height: int, width: int) -> None:
    """Refuse what cannot be held: the pixels as bytes and, standardised, as float32.

    Args:
        root: the folder of the images.
        images: how many there are.
        height: of each, in pixels.
        width: likewise.

    Raises:
        DataError: It is more than this computer has.
    """
    needed = 15 * images * height * width
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return
    if needed > there:
        raise DataError(
            f"{images} images of {width}x{height} pixels need {needed / 2**30:.0f} GiB of "
            f"memory, and there are {there / 2**30:.0f}: reduce them with --set stream.image_size=N"
            " (pixels)",
            at=root,
        )
