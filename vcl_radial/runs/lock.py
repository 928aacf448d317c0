"""One run, one worker: a run's folder is held while somebody works in it.

The lock is the operating system's, on the folder itself: it ends with its holder, however that
ends, and leaves no file behind. Where a file system has no locks, nothing is held.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from vcl_radial.errors import UserError
from vcl_radial.runs.folder import not_written


class AtWork(UserError):
    """Somebody else works in the folder."""

    def __init__(self) -> None:
        super().__init__(
            "another command is at work on this run in the same folder; wait for it, or stop it, "
            "and give this command again"
        )


@contextmanager
def held(paths: Sequence[Path]) -> Iterator[None]:
    """Nobody else works in these folders meanwhile; they are made, and removed if left empty.

    Raises:
        AtWork: somebody does.
        UserError: a folder cannot be made.
    """
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(_held(path))
        yield


@contextmanager
def _held(path: Path) -> Iterator[None]:
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        raise AtWork from None
    except OSError as error:
        raise not_written(path, error) from None
    try:
        yield
    finally:
        for folder in (path, path.parent, path.parent.parent):
            with suppress(OSError):  # it holds something, as it should
                folder.rmdir()
        os.close(descriptor)


def _locked(path: Path) -> int:
    """The folder, opened and locked.

    Raises:
        BlockingIOError: somebody holds it.
    """
    while True:
        path.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # its last holder has just removed it
            continue
        try:
            _lock(descriptor)
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # this system has other locks
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # this file system has none
        return
