"""Files that are there whole or not at all, whoever is killed or writes at the same time."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import tempfile
from pathlib import Path

from vcl_radial.files.reading import open_file

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # a system with other locks: what a killed write left stays there
    flock = None  # type: ignore[assignment]


def write(path: Path, data: bytes | memoryview) -> None:
    """Replace a file, and remove what killed writers of it left behind.

    A writer holds a lock on its temporary file; one that nobody holds belongs to nobody.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}"):
        _remove_if_left(other)
    descriptor, temporary = _own_file(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o644)  # mkstemp makes files that only their owner can read
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def gzipped(text: str) -> bytes:
    """For a file that is to be the same whenever it is written: without a time."""
    return gzip.compress(text.encode(), mtime=0)


def _own_file(path: Path) -> tuple[int, Path]:
    """A new file beside a path, locked before anybody took it for left behind."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        if flock is None:
            return descriptor, Path(name)
        with contextlib.suppress(OSError):  # this file system has no locks
            flock(descriptor, LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)


def _remove_if_left(temporary: Path) -> None:
    if flock is None:
        return
    with contextlib.suppress(OSError), open_file(temporary) as file:
        flock(file, LOCK_EX | LOCK_NB)
        temporary.unlink()
