"""Where image files lie: a folder of the user's, or a cache folder filled by download.

The user's folder is only read. Downloads go to the cache folder alone.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from vcl_radial.cache import cache_root
from vcl_radial.errors import DataError, UserError
from vcl_radial.streams.idx import find_idx

DATA_VARIABLE = "VCL_RADIAL_DATA"
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def user_root(data_dir: Path | None) -> Path | None:
    """Return the folder that the user named: `data_dir`, else `$VCL_RADIAL_DATA`, else None.

    Raises:
        UserError: The folder was named but does not exist.
    """
    if data_dir is not None:
        root, origin = expanded(Path(data_dir)), "the data folder"
    elif variable := os.environ.get(DATA_VARIABLE):
        root, origin = expanded(Path(variable)), f"the data folder of {DATA_VARIABLE}"
    else:
        return None
    if not root.is_dir():
        raise UserError(f"{root}, {origin}, is not a folder: create it or name another")
    return root


def expanded(path: Path) -> Path:
    """With a home folder in place of `~`; as it stands where nobody of that name is known."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def user_files(root: Path, folder: str | None) -> dict[str, Path]:
    """Find the four IDX files in `root/<folder>/raw`, `root/raw` or `root` itself.

    Args:
        root: The user's data folder.
        folder: The data set's folder as torchvision names it; None if the files have none.

    Returns:
        The path of each of `IDX_NAMES`, all from one folder.

    Raises:
        DataError: No place holds all four files; names what is missing in the likeliest one.
    """
    places = [root / "raw", root]
    if folder is not None:
        places.insert(0, root / folder / "raw")
    found = [_files_in(place) for place in places]
    # A tie (nothing found at all) points the user to the first, the conventional place.
    best = max(range(len(places)), key=lambda i: len(found[i]))
    missing = [name for name in IDX_NAMES if name not in found[best]]
    if missing:
        raise DataError(
            f"{places[best]} lacks {', '.join(f'{name}[.gz]' for name in missing)}: "
            "copy the published files there, or name another data folder"
        )
    return found[best]


def cached_files(folder: str) -> dict[str, Path]:
    """Find the four IDX files of a torchvision data set in the cache, downloading them if need be.

    Args:
        folder: The data set's class in torchvision, which is also its folder: "FashionMNIST".

    Raises:
        UserError: They are not there and could not be downloaded; names files and folder.
    """
    place = cache_root() / folder / "raw"
    with _one_at_a_time(folder):
        if len(_files_in(place)) < len(IDX_NAMES):
            _download(folder, place)
    return _files_in(place)


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


def _files_in(place: Path) -> dict[str, Path]:
    paths = {name: find_idx(place, name) for name in IDX_NAMES}
    return {name: path for name, path in paths.items() if path is not None}


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
