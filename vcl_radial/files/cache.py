"""Where the suite keeps what can be made or fetched again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vcl_radial.errors import UserError


def cache_root() -> Path:
    """The cache folder: `$XDG_CACHE_HOME/vcl_radial`, else `~/.cache/vcl_radial`.

    A user without a home folder has one in the temporary folder.

    Raises:
        UserError: that one is somebody else's.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "vcl_radial"
    except RuntimeError:  # neither $HOME nor an entry for this user
        return _temporary()


def _temporary() -> Path:
    """A cache folder that this user alone can write: code is loaded from it."""
    folder = Path(tempfile.gettempdir()) / f"vcl_radial-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UserError("belongs to somebody else; set XDG_CACHE_HOME to your own", at=folder)
    return folder


@contextmanager
def one_at_a_time(lock: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Others who hold this lock file wait meanwhile; it ends with its holder, however that ends.

    Args:
        lock: the file; its folder is made.
        waits: called where another process holds it.

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
