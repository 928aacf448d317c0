"""The cache folder for files that can be made or downloaded again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vcl_radial.errors import UserError


def cache_root() -> Path:
    """The cache folder: `$XDG_CACHE_HOME/vcl_radial`, else `~/.cache/vcl_radial`.

    For a user without a home folder it lies in the temporary folder.

    Raises:
        UserError: the folder there belongs to another user.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "vcl_radial"
    except RuntimeError:  # no $HOME and no entry for this user
        return _temporary()


def _temporary() -> Path:
    """A cache folder that only this user can write, since code is loaded from it."""
    folder = Path(tempfile.gettempdir()) / f"vcl_radial-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UserError("belongs to another user; set XDG_CACHE_HOME to your folder", at=folder)
    return folder


@contextmanager
def one_at_a_time(lock: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file inside; other processes wait. The lock is released when its holder exits.

    Args:
        lock: the file; its folder is made.
        waits: called if another process holds the lock.

    Raises:
        OSError: the file cannot be written.
    """
    from filelock import FileLock, Timeout

    lock.parent.mkdir(parents=True, exist_ok=True)
    file = FileLock(lock)
    try:
        file.acquire(timeout=0)
    except Timeout:
        waits()
        file.acquire()
    try:
        yield
    finally:
        file.release()
