"""One run, one worker: the folder of a run is locked while a worker runs it.

The operating system locks a hidden file beside the folder. It releases the lock when the holder
ends for any reason; the holder removes the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from vcl_radial.errors import UserError
from vcl_radial.files.atomic import not_written

_ATTEMPTS = 100
"""Attempts to lock a folder that its last holder may be removing."""


class AlreadyRunning(UserError):
    """Another process holds the lock of the folder."""

    def __init__(self) -> None:
        super().__init__(
            "another command is running this run in the same folder; wait for it, or stop it, and "
            "give this command again"
        )


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a folder; the folder is made, and removed if it stays empty.

    Raises:
        AlreadyRunning: another process holds the lock.
        UserError: the folder cannot be made.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        _acquire(lock, path)
    except Timeout:
        raise AlreadyRunning from None
    except OSError as error:
        raise not_written(path, error) from None
    try:
        path.mkdir(exist_ok=True)  # the last holder may have removed it
        yield
    finally:
        with suppress(OSError):  # the folder is not empty, as it should be
            path.rmdir()
        # The file is removed while it is locked, so that a process that has opened it sees that its
        # name is gone.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
        for folder in (path.parent, path.parent.parent):
            with suppress(OSError):
                folder.rmdir()


def _acquire(lock: FileLock, path: Path) -> None:
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except (FileNotFoundError, FileExistsError):
            if not attempts_left:
                raise
        else:
            return
