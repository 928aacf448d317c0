"""Published image files in the cache folder, filled by download."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from vcl_radial.cache import cache_root
from vcl_radial.data_files import DATA_VARIABLE, IDX_NAMES, idx_files
from vcl_radial.errors import UserError


def cached_files(folder: str) -> dict[str, Path]:
    """Find the four IDX files of a torchvision data set in the cache, downloading them if need be.

    Args:
        folder: The data set's class in torchvision, which is also its folder: "FashionMNIST".

    Raises:
        UserError: They are not there and could not be downloaded; names files and folder.
    """
    place = cache_root() / folder / "raw"
    with _one_at_a_time(folder):
        if len(idx_files(place)) < len(IDX_NAMES):
            _download(folder, place)
    return idx_files(place)


@contextmanager
def _one_at_a_time(folder: str) -> Iterator[None]:
    """Whoever comes while another command downloads waits: until then files are there in part."""
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache_root() / f".{folder}.lock")
        lock.acquire()
    except OSError:  # where no lock can be written, nobody downloads
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _download(folder: str, place: Path) -> None:
    from torchvision import datasets

    try:
        getattr(datasets, folder)(cache_root(), download=True)
    except (OSError, RuntimeError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split())
        names = ", ".join(f"{name}.gz" for name in IDX_NAMES)
        raise UserError(
            f"{folder} cannot be downloaded ({reason}): put {names} into {place}, "
            f"or name the folder that holds them in {DATA_VARIABLE}"
        ) from error
