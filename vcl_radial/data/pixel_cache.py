"""A cache of decoded pictures: one file of pixels that is mapped into memory.

    <cache>/<family>-<fingerprint>.npy     uint8 [N, 3, H, W]
                                  .json    checksum; which pictures are unreadable

The fingerprint covers the versions of the pictures and the text of the code that decodes them:
other pictures have another file. The `.json` file is written last and its checksum is verified
whenever the pixels are opened, so that incomplete files are never used.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data import decoding
from vcl_radial.data.decoding import ReportProgress
from vcl_radial.errors import UserError
from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root, one_at_a_time
from vcl_radial.files.reading import checksum, read_json
from vcl_radial.system.quiet import quiet

Pixels: TypeAlias = NDArray[np.uint8]
"""Pixels of a picture, `[3, H, W]`, or of many, `[N, 3, H, W]`."""

Decoded: TypeAlias = tuple[tuple[int, ...], Generator[Pixels | str, None, None]]
"""The shape `[N, 3, H, W]`, and the pixels of each picture or the reason why it is unreadable."""


@dataclass(frozen=True)
class PixelCache:
    """An open cache.

    Attributes:
        pixels: uint8 `[N, 3, H, W]`, mapped read-only.
        unreadable: numbers of the pictures that could not be decoded, whose pixels are 0, and why.
    """

    pixels: Pixels
    unreadable: dict[int, str]


def open_pixels(
    title: str,
    family: str,
    versions: Any,
    modules: Iterable[ModuleType],
    decode: Callable[[], Decoded],
    report: ReportProgress,
) -> PixelCache:
    """Open a cache of pixels, and decode the pictures if it is missing or damaged.

    Args:
        title: name of the pixels, for lines to the user.
        family: beginning of the file's path in the cache folder. Other files with this beginning
            are of earlier versions, and are deleted.
        versions: what the pixels depend on, as values of JSON.
        modules: modules besides `decoding` whose text the pixels depend on.
        decode: starts to decode.
        report: takes a line for the user.

    Raises:
        UserError: the cache cannot be written, or there is not enough space.
    """
    text = [Path(module.__file__ or "").read_text("utf-8") for module in (decoding, *modules)]
    path = cache_root() / f"{family}-{digest([versions, text])[:16]}.npy"
    waiting = f"{title}: another process is decoding them; waiting"
    try:
        if (cache := _opened(path)) is not None:
            return cache
        with one_at_a_time(_beside(path, "lock"), lambda: report(waiting)):
            if (cache := _opened(path)) is not None:  # the process with the lock has made it
                return cache
            state = "damaged; decoding" if path.exists() else "decoding"
            with quiet():  # Pillow warns of pictures that are rejected here
                shape, pictures = decode()
                report(f"{title}: {state} {shape[0]} pictures into {path}")
                with contextlib.closing(pictures):
                    _build(path, shape, pictures)
            if (cache := _opened(path)) is not None:
                return cache
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror or error}; free space, or set "
            "XDG_CACHE_HOME to another folder",
            at=path,
        ) from None
    raise UserError("is damaged right after it was made; check the disk", at=path)


def file_version(path: Path) -> str:
    """Size and time of the last change of a file, or why they are unknown."""
    try:
        status = path.stat()
    except OSError as error:  # decoding reports it
        return error.strerror or "cannot be read"
    return f"{status.st_size} {status.st_mtime_ns}"


def digest(content: Any) -> str:
    """SHA-256 of values of JSON, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _build(path: Path, shape: tuple[int, ...], pictures: Iterable[Pixels | str]) -> None:
    """Write pixels picture by picture; rename the complete file, and delete older files."""
    needed, free = prod(shape), shutil.disk_usage(path.parent).free
    if free < needed:
        raise UserError(
            f"decoding takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
            "free; free space, choose a smaller size, or set XDG_CACHE_HOME",
            at=path.parent,
        )
    unreadable: dict[int, str] = {}
    unnamed = _beside(path, "partial")  # no other process writes it, because this one has the lock
    try:
        with unnamed.open("wb") as file:
            # Not through a memory map: a full disk would end the process without a message.
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for number, pixels in enumerate(pictures):
                if isinstance(pixels, str):
                    unreadable[number] = pixels
                file.write(bytes(prod(shape[1:])) if isinstance(pixels, str) else pixels.tobytes())
            file.flush()
            os.fsync(file.fileno())
        index = {"sha256": checksum(unnamed, sys.maxsize), "unreadable": unreadable}
        unnamed.replace(path)
    finally:
        unnamed.unlink(missing_ok=True)
    atomic.write(path.with_suffix(".json"), json.dumps(index).encode())
    for earlier in path.parent.glob(f"{glob.escape(_family(path))}-*"):
        if earlier.stem != path.stem:
            with contextlib.suppress(OSError):  # some systems refuse while a process reads it
                earlier.unlink()


def _opened(path: Path) -> PixelCache | None:
    try:
        index = read_json(path.with_suffix(".json"))
        if checksum(path, sys.maxsize) != index["sha256"]:
            return None
        unreadable = {int(number): reason for number, reason in index["unreadable"].items()}
        return PixelCache(np.load(path, mmap_mode="r"), unreadable)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing, or damaged
        return None


def _family(path: Path) -> str:
    """The beginning of the names of all versions of a file."""
    return path.stem.rpartition("-")[0]


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{_family(path)}.{suffix}")
