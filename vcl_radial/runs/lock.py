"""One run, one worker: a run's folder is held while somebody works in it.

The lock is the operating system's, on a hidden file beside the folder: it ends with its holder,
however that ends, and the file goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from vcl_radial.errors import UserError
from vcl_radial.runs.folder import not_written

_ATTEMPTS = 100
"""At a folder that its last holder is removing meanwhile."""


class AlreadyRunning(UserError):
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
        AlreadyRunning: somebody does.
        UserError: a folder cannot be made.
    """
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(_held(path))
        yield


@contextmanager
def _held(path: Path) -> Iterator[None]:
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        _acquire(lock, path)
    except Timeout:
        raise AlreadyRunning from None
    except OSError as error:
        raise not_written(path, error) from None
    try:
        path.mkdir(exist_ok=True)  # its last holder may have removed it
        yield
    finally:
        with suppress(OSError):  # it holds something, as it should
            path.rmdir()
        # While it is held: who has opened it meanwhile sees that it has no name any more.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
        for folder in (path.parent, path.parent.parent):
            with suppress(OSError):
                folder.rmdir()


def _acquire(lock: FileLock, path: Path) -> None:
    for left in reversed(range(_ATTEMPTS)):
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except (FileNotFoundError, FileExistsError):
            if not left:
                raise
        else:
            return
