"""Photographs decoded once, into one file of pixels that is mapped into memory.

    <cache>/fundus/<data set>-<size>px-<origin>-<fingerprint>.npy    uint8 [N, 3, size, size]
                                                            .json    checksum; what is unreadable

The fingerprint covers names, sizes and times of the files, the settings, and the text of the
preparation: other photographs have other files. The `.json` file is written last and its checksum
is verified whenever the pixels are opened, so that incomplete files are never used.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data import decoding
from vcl_radial.data.decoding import ReportProgress, Unreadable, decoded
from vcl_radial.data.fundus import files, local_normalisation, prepare
from vcl_radial.data.fundus.prepare import Normalise
from vcl_radial.data.fundus.table import Photograph, Photographs, Reader
from vcl_radial.errors import UserError
from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root, one_at_a_time
from vcl_radial.files.reading import open_file, read_json
from vcl_radial.system.quiet import quiet


@dataclass(frozen=True)
class PixelCache:
    """An open cache.

    Attributes:
        pixels: uint8 `[N, 3, size, size]`, mapped read-only.
        unreadable: rows that could not be decoded, whose pixels are 0, and why.
    """

    pixels: NDArray[np.uint8]
    unreadable: dict[str, str]


def open_pixels(
    photographs: Photographs,
    size: int,
    crop: bool,
    normalise: Normalise,
    jobs: int,
    report: ReportProgress,
) -> PixelCache:
    """Open the cache of a table, and decode the photographs where it is missing or damaged.

    Raises:
        UserError: it cannot be written, or there is not enough space.
    """
    title = f"pixels of {photographs.name} at {size} px"
    path = _path(photographs, size, crop, normalise)
    waiting = f"{title}: another process is decoding them; waiting"
    try:
        if (cache := _opened(path)) is not None:
            return cache
        with one_at_a_time(path.with_name(f"{_family(path)}.lock"), lambda: report(waiting)):
            if (cache := _opened(path)) is not None:  # the process with the lock has made it
                return cache
            state = "damaged; decoding" if path.exists() else "decoding"
            report(f"{title}: {state} {len(photographs)} photographs into {path}")
            reader = photographs.reader
            decode = partial(decode_one, reader, size=size, crop=crop, normalise=normalise)
            with quiet():  # Pillow warns of pictures that are rejected here
                rows = decoded(decode, photographs.rows, jobs, title, report)
                _build(path, photographs, size, rows)
            if (cache := _opened(path)) is not None:
                return cache
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror or error}; free space, or set "
            "XDG_CACHE_HOME to another folder",
            at=path,
        ) from None
    raise UserError("is damaged right after it was made; check the disk", at=path)


def decode_one(
    reader: Reader, photograph: Photograph, size: int, crop: bool, normalise: Normalise
) -> NDArray[np.uint8] | str:
    """The pixels `[3, size, size]` of a photograph, or why there are none."""
    try:
        square = prepare.squared(reader.read(photograph, size), size, crop, normalise)
    except Unreadable as why:
        return str(why)
    return np.ascontiguousarray(square.transpose(2, 0, 1))


def _build(
    path: Path, photographs: Photographs, size: int, rows: Iterator[NDArray[np.uint8] | str]
) -> None:
    """Write pixels row by row, and name the file when it is complete; earlier ones go."""
    shape = (len(photographs), 3, size, size)
    needed, free = int(np.prod(shape)), shutil.disk_usage(path.parent).free
    if free < needed:
        raise UserError(
            f"decoding takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are "
            "free; free space, choose a smaller size, or set XDG_CACHE_HOME",
            at=path.parent,
        )
    unreadable: dict[str, str] = {}
    unnamed = path.with_name(f"{_family(path)}.partial")  # of nobody else, who would hold the lock
    try:
        with unnamed.open("wb") as file:
            # Not through a map: a disk that is full would end the process without a word.
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for photograph, pixels in zip(photographs.rows, rows, strict=True):
                if isinstance(pixels, str):
                    unreadable[photograph.name] = pixels
                file.write(bytes(3 * size**2) if isinstance(pixels, str) else pixels.tobytes())
            file.flush()
            os.fsync(file.fileno())
        index = {"sha256": _sha256(unnamed), "unreadable": unreadable}
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
        if _sha256(path) != index["sha256"]:
            return None
        return PixelCache(np.load(path, mmap_mode="r"), dict(index["unreadable"]))
    except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged
        return None


def _path(photographs: Photographs, size: int, crop: bool, normalise: Normalise) -> Path:
    settings = {
        "size": size,
        "crop": crop,
        "normalise": normalise,
        "origin": photographs.reader.origin,
    }
    versions = []
    for row in photographs.rows:
        try:
            versions.append([row.name, photographs.reader.version(row)])
        except Unreadable as why:
            versions.append([row.name, str(why)])
    modules = (prepare, local_normalisation, files, decoding)
    text = [Path(module.__file__ or "").read_text("utf-8") for module in modules]
    origin, fingerprint = _digest(settings), _digest([settings, versions, text])
    name = f"{photographs.name}-{size}px-{origin[:8]}-{fingerprint[:16]}.npy"
    return cache_root() / "fundus" / name


def _family(path: Path) -> str:
    """The common prefix of all versions of the files of one data set, size and origin."""
    return path.stem.rpartition("-")[0]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
