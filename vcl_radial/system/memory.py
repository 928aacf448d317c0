"""Check that images fit into the memory of this computer, before any is decoded."""

from __future__ import annotations

import os
from pathlib import Path

from vcl_radial.errors import DataError


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
