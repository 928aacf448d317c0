"""Decode pictures from files: several at a time, in order, with progress."""

from __future__ import annotations

import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from vcl_radial.files.reading import read_bytes
from vcl_radial.system.output import terminal

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
"""Pillow's names of the formats of `class_folders.IMAGE_ENDINGS`."""

_BYTES: Final = 256 << 20
"""Largest size of a picture's file, in bytes."""
_PIXELS: Final = 89_478_485
"""Largest number of pixels of a picture, above which Pillow warns of a decompression bomb."""

ReportProgress = Callable[[str], None]
"""Takes a line for the user."""

_PATIENCE = 2.0
"""Seconds until the first line of progress without a terminal."""
_EVERY = 20.0
"""Seconds between two lines."""
_CHUNK = 16
"""Number of pictures that a thread decodes at a time, if there are many."""

S = TypeVar("S")
T = TypeVar("T")


class Unreadable(Exception):
    """A picture cannot be read; the message states the reason."""


def print_progress(line: str) -> None:
    """Print a line on the standard error output."""
    print(f"vcl-radial: {line}", file=sys.stderr)


def read_picture(path: Path, edge: int | None = None) -> Image.Image:
    """Return a picture in 8 bits per channel, grey (L) or RGB, rotated by its EXIF entry.

    Pixels of 16 bits keep their upper 8. Transparency is dropped.

    Args:
        path: file in one of `FORMATS`.
        edge: a JPEG with edges of at least twice this length is decoded at a smaller scale, with
            edges of at least this length, in pixels; None: at full scale.

    Raises:
        Unreadable: the file is missing, not regular, not permitted, damaged or too large, or it is
            no picture or has 32 bits per channel.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        # Without `formats`, Pillow would run Ghostscript on PostScript with any file name.
        with Image.open(io.BytesIO(read_bytes(path, _BYTES)), formats=FORMATS) as picture:
            return _in_8_bits(picture, edge)
    except (Unreadable, MemoryError):
        raise
    except FileNotFoundError:
        raise Unreadable("the file is missing") from None
    except UnidentifiedImageError:
        raise Unreadable(f"its format is none of {', '.join(FORMATS)}") from None
    except Exception as error:  # Pillow's decoders raise all kinds of errors on damaged bytes
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise Unreadable(why or type(error).__name__) from None


def _in_8_bits(picture: Image.Image, edge: int | None) -> Image.Image:
    from PIL import ImageOps

    if picture.width * picture.height > _PIXELS:
        raise Unreadable(f"its {picture.width}x{picture.height} pixels are more than {_PIXELS:,}")
    if edge is not None:
        picture.draft(None, (edge, edge))
    # Pillow stores the 16-bit pixels of a PNG or PGM in 32 bits.
    deep = picture.mode.startswith("I;16") or (
        picture.mode == "I" and picture.format in ("PNG", "PPM")
    )
    if picture.mode in ("I", "F") and not deep:
        raise Unreadable("its pixels are not unsigned integers of 8 or 16 bits")
    ImageOps.exif_transpose(picture, in_place=True)
    if deep:
        return _upper_bits(picture)
    return picture.convert("L" if picture.mode in ("1", "L", "LA", "La") else "RGB")


def _upper_bits(picture: Image.Image) -> Image.Image:
    """The upper 8 bits of grey pixels, which in a TIFF may have 12 bits and count from white."""
    from PIL import Image

    tags = getattr(picture, "tag_v2", {})
    (bits,) = tags.get(258, (16,))
    pixels = (np.asarray(picture) >> (bits - 8)).astype(np.uint8)
    return Image.fromarray(~pixels if tags.get(262) == 0 else pixels)


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decoded(
    function: Callable[[S], T], items: Sequence[S], jobs: int, title: str, report: ReportProgress
) -> Generator[T, None, None]:
    """Yield the function of each item, in order, with a progress bar, or lines without a terminal.

    Args:
        function: decodes an item.
        items: items to decode.
        jobs: number of threads; decoders release the interpreter lock.
        title: title of the progress.
        report: takes a line for the user if there is no terminal.
    """
    pool = ThreadPoolExecutor(jobs)
    try:
        results = _in_order(pool, function, items, 4 * jobs)
        yield from with_progress(results, len(items), title, report)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[S], T], items: Sequence[S], ahead: int
) -> Iterator[T]:
    """Like `pool.map`, but at most `ahead` chunks ahead, since results may be large."""
    size = max(1, min(_CHUNK, len(items) // (2 * ahead)))

    def chunk(start: int) -> list[T]:
        return [function(item) for item in items[start : start + size]]

    waiting: deque[Future[list[T]]] = deque()
    for start in range(0, len(items), size):
        waiting.append(pool.submit(chunk, start))
        if len(waiting) > ahead:
            yield from waiting.popleft().result()
    for future in waiting:
        yield from future.result()


def with_progress(
    items: Iterable[T],
    total: int | None,
    title: str,
    report: ReportProgress = print_progress,
    size: Callable[[T], int] = lambda item: 1,
) -> Iterator[T]:
    """Yield items with a progress bar, or lines without a terminal.

    Args:
        items: the items.
        total: sum of their sizes; None if it is not known.
        title: title of the progress.
        report: takes a line for the user if there is no terminal.
        size: size of an item.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(file=terminal(sys.stderr)), transient=True) as bar:
            task = bar.add_task(title, total=total)
            for item in items:
                yield item
                bar.advance(task, size(item))
        return
    due, done = time.monotonic() + _PATIENCE, 0
    for item in items:
        yield item
        done += size(item)
        if time.monotonic() > due:
            due = time.monotonic() + _EVERY
            report(f"{title}: {done:,}" + ("" if total is None else f" of {total:,}"))
