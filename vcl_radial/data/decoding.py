"""Pictures decoded from files: several at a time, in order, with progress."""

from __future__ import annotations

import os
import struct
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vcl_radial.output import terminal

if TYPE_CHECKING:
    from PIL import Image

Tell = Callable[[str], None]
"""Takes a line for the user."""

_PATIENCE = 2.0
"""Seconds until the first line of progress where there is no terminal."""
_EVERY = 20.0
"""Seconds between two lines."""
_CHUNK = 16
"""Pictures that a thread decodes at a time, where there are many."""

S = TypeVar("S")
T = TypeVar("T")


class Unreadable(Exception):
    """A picture cannot be read; says why in a few words."""


def tell_user(line: str) -> None:
    """Print a line on the standard error output."""
    print(f"vcl-radial: {line}", file=sys.stderr)


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture in a file, for as long as it is decoded.

    Raises:
        Unreadable: the file is missing, must not be read, is damaged or no picture, there or while
            it is decoded.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            yield picture
    except FileNotFoundError:
        raise Unreadable("the file is missing") from None
    except UnidentifiedImageError:
        raise Unreadable("its format is not known") from None
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        IndexError,
        struct.error,
        zlib.error,
        Image.DecompressionBombError,
    ) as error:  # what Pillow's decoders raise where bytes are not what they should be
        if strerror := getattr(error, "strerror", None):
            raise Unreadable(f"cannot be read: {strerror}") from None
        raise Unreadable(" ".join(str(error).split()) or type(error).__name__) from None


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decoded(
    function: Callable[[S], T], items: Sequence[S], jobs: int, words: str, tell: Tell
) -> Iterator[T]:
    """The function of each item, in order, with a bar on a terminal and now and then a line else.

    Args:
        function: decodes an item.
        items: to be decoded.
        jobs: how many at a time: threads, since decoders let go of the interpreter.
        words: what is decoded, for the progress.
        tell: takes a line for the user where there is no terminal.
    """
    pool = ThreadPoolExecutor(jobs)
    try:
        results = _in_order(pool, function, items, 4 * jobs)
        yield from _shown(results, len(items), words, tell)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[S], T], items: Sequence[S], ahead: int
) -> Iterator[T]:
    """As `pool.map`, but never more than so many chunks ahead: results may be large."""
    size = max(1, min(_CHUNK, len(items) // (2 * ahead)))

    def chunk(start: int) -> list[T]:
        return [function(item) for item in items[start : start + size]]

    waiting: deque[Future[list[T]]] = deque()
    for start in range(0, len(items), size):
        waiting.append(pool.submit(chunk, start))
        if len(waiting) > ahead:
            yield from waiting.popleft().result()
    for last in waiting:
        yield from last.result()


def _shown(items: Iterable[T], total: int, words: str, tell: Tell) -> Iterator[T]:
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(file=terminal(sys.stderr)), transient=True) as bar:
            yield from bar.track(items, total, description=words)
        return
    due = time.monotonic() + _PATIENCE
    for count, item in enumerate(items, start=1):
        yield item
        if time.monotonic() > due:
            due = time.monotonic() + _EVERY
            tell(f"{words}: {count} of {total}")
