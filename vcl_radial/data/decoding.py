"""Pictures decoded from files: several at a time, in order, with progress."""

from __future__ import annotations

import io
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from vcl_radial.files.reading import read_bytes
from vcl_radial.system.output import terminal

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP")
"""Formats of pictures that are read, by Pillow's names: those of `class_folders.IMAGE_ENDINGS`."""

_BYTES: Final = 256 << 20
"""Bytes of a picture's file at most."""
_PIXELS: Final = 89_478_485
"""Pixels of a picture at most: those from which on Pillow warns of a bomb."""

ReportProgress = Callable[[str], None]
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


def read_picture(path: Path, edge: int | None = None) -> Image.Image:
    """Return a picture in 8 bits per channel, grey (L) or RGB, turned as its EXIF entry says.

    Pixels of 16 bits keep their upper 8. Transparency is left out.

    Args:
        path: a file in one of `FORMATS`.
        edge: a JPEG whose edges are twice as long or longer is decoded at a smaller scale, with
            edges of at least so many pixels; None: as it is.

    Raises:
        Unreadable: the file is missing, no regular one, must not be read, is damaged or too large,
            or is no picture or one with 32 bits per channel.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        # Without `formats`, Pillow hands PostScript under any name to Ghostscript.
        with Image.open(io.BytesIO(read_bytes(path, _BYTES)), formats=FORMATS) as picture:
            return _in_8_bits(picture, edge)
    except (Unreadable, MemoryError):
        raise
    except FileNotFoundError:
        raise Unreadable("the file is missing") from None
    except UnidentifiedImageError:
        raise Unreadable(f"its format is none of {', '.join(FORMATS)}") from None
    except Exception as error:  # Pillow's decoders raise all kinds where bytes are damaged
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise Unreadable(why or type(error).__name__) from None


def _in_8_bits(picture: Image.Image, edge: int | None) -> Image.Image:
    from PIL import ImageOps

    if picture.width * picture.height > _PIXELS:
        raise Unreadable(f"its {picture.width}x{picture.height} pixels are more than {_PIXELS:,}")
    if edge is not None:
        picture.draft(None, (edge, edge))
    # Of a PNG or PGM, Pillow has the 16 bits of a pixel in 32.
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
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decoded(
    function: Callable[[S], T], items: Sequence[S], jobs: int, words: str, tell: ReportProgress
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


def _shown(items: Iterable[T], total: int, words: str, tell: ReportProgress) -> Iterator[T]:
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
