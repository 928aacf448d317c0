"""Decoding many photographs: several at a time, in order, with progress."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.fundus.faults import Tell
from vcl_radial.data.fundus.prepare import squared
from vcl_radial.data.fundus.table import Photograph, Reader, Unreadable

_EVERY = 20.0
"""Seconds between two lines of progress where there is no terminal."""

S = TypeVar("S")
T = TypeVar("T")


def decode_one(
    reader: Reader, photograph: Photograph, size: int, crop: bool
) -> NDArray[np.uint8] | str:
    """The pixels `[3, size, size]` of a photograph, or why there are none."""
    try:
        square = squared(reader.read(photograph, size), size, crop)
    except Unreadable as why:
        return str(why)
    return np.ascontiguousarray(square.transpose(2, 0, 1))


def decode(
    reader: Reader,
    rows: Sequence[Photograph],
    size: int,
    crop: bool,
    jobs: int,
    words: str,
    tell: Tell,
) -> Iterator[NDArray[np.uint8] | str]:
    """What `decode_one` gives for each row, in order.

    Args:
        reader: of the pictures.
        rows: to be decoded.
        size: pixels along an edge.
        crop: whether the field of view is cut out.
        jobs: how many at a time: threads, since decoders let go of the interpreter.
        words: what is decoded, for the progress.
        tell: takes a line for the user where there is no terminal.
    """

    def one(row: Photograph) -> NDArray[np.uint8] | str:
        return decode_one(reader, row, size, crop)

    pool = ThreadPoolExecutor(jobs)
    try:
        yield from shown(_in_turn(pool, one, rows, 8 * jobs), len(rows), words, tell)
    finally:
        pool.shutdown(cancel_futures=True)


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shown(items: Iterable[T], total: int, words: str, tell: Tell) -> Iterator[T]:
    """The items, with a bar on a terminal and a line now and then elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(console=console, transient=True) as bar:
            task = bar.add_task(words, total=total)
            for item in items:
                yield item
                bar.advance(task)
        return
    said = time.monotonic()
    for count, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - said > _EVERY:
            said = time.monotonic()
            tell(f"{words}: {count} of {total}")


def _in_turn(
    pool: ThreadPoolExecutor, function: Callable[[S], T], items: Iterable[S], ahead: int
) -> Iterator[T]:
    """As `pool.map`, but never more than so many ahead: results may be large."""
    left = iter(items)
    waiting = deque(pool.submit(function, item) for item in islice(left, ahead))
    while waiting:
        result = waiting.popleft().result()
        waiting.extend(pool.submit(function, item) for item in islice(left, 1))
        yield result
