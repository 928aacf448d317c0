"""Write files atomically: complete or not at all, crash-safe and with concurrent writers."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from vcl_radial.errors import UserError
from vcl_radial.files.reading import open_file

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # a system with other locks: files of killed writers stay
    flock = None  # type: ignore[assignment]


def not_written(path: Path, error: OSError) -> UserError:
    """The error for a file that cannot be written."""
    return UserError(
        f"cannot be written: {error.strerror or error}; free space or choose another folder",
        at=path,
    )


def write(path: Path, data: bytes | memoryview) -> None:
    """Replace a file, and remove temporary files of killed writers.

    A writer locks its temporary file, so a temporary file without a lock is a leftover.

    Raises:
        OSError: the file cannot be written; the old one is unchanged.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces a file at the end; see `write`.

    Raises:
        OSError: the file cannot be written; the old one is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}"):
        _remove_if_unlocked(other)
    descriptor, temporary = _temporary_file(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o644)  # mkstemp makes files that only their owner can read
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def gzipped(text: str) -> bytes:
    """Compress a text without a time stamp, so that equal texts give equal bytes."""
    return gzip.compress(text.encode(), mtime=0)


def _temporary_file(path: Path) -> tuple[int, Path]:
    """Make and lock a new file beside a path; try again if another writer removed it first."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        if flock is None:
            return descriptor, Path(name)
        with contextlib.suppress(OSError):  # some file systems have no locks
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)


def _remove_if_unlocked(temporary: Path) -> None:
    if flock is None:
        return
    with contextlib.suppress(OSError), open_file(temporary) as file:
        flock(file, LOCK_EX | LOCK_NB)
        temporary.unlink()
