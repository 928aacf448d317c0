"""Published image files in the cache folder, downloaded on demand."""

from __future__ import annotations

import zlib
from pathlib import Path

from vcl_radial.data.data_files import DATA_VARIABLE, IDX_NAMES, idx_files
from vcl_radial.errors import UserError
from vcl_radial.files.cache import cache_root, one_at_a_time


def cached_files(folder: str) -> dict[str, Path]:
    """Find the four IDX files of a torchvision data set in the cache; download them if missing.

    Args:
        folder: The data set's class in torchvision, which is also its folder: "FashionMNIST".

    Raises:
        UserError: The files are missing and could not be downloaded; names files and folder.
    """
    path = cache_root() / folder / "raw"
    try:
        # Other processes wait, since a download leaves incomplete files until it ends.
        with one_at_a_time(cache_root() / f".{folder}.lock"):
            if len(idx_files(path)) < len(IDX_NAMES):
                from torchvision import datasets

                getattr(datasets, folder)(cache_root(), download=True)
    except (OSError, RuntimeError, EOFError, zlib.error) as error:
        if len(idx_files(path)) < len(IDX_NAMES):  # a read-only cache may have them
            reason = " ".join(str(error).split())
            names = ", ".join(f"{name}.gz" for name in IDX_NAMES)
            raise UserError(
                f"cannot be downloaded ({reason}): put {names} into {path}, "
                f"or name the folder that holds them in {DATA_VARIABLE}",
                at=folder,
            ) from error
    return idx_files(path)
