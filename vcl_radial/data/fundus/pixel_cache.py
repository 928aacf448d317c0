"""Photographs decoded once, into one file of pixels that is mapped into memory.

    <cache>/fundus/<data set>-<size>px-<hash of origin and settings>/
        index.json            fingerprint, checksum, what could not be read; written last
        pixels-<checksum>.npy uint8 [N, 3, size, size], a row for each photograph of the table
        partial.npy, .json    what an interrupted build goes on from
        lock                  held while one process builds and others wait

The fingerprint covers names, sizes and times of the files, the settings, and the text of the
preparation: another one is stale. The checksum covers all pixels, and is verified whenever the
cache is opened. Readers meet the old cache or the new one, never half of either.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from vcl_radial import atomic
from vcl_radial.cache import cache_root
from vcl_radial.data.fundus import files, prepare
from vcl_radial.data.fundus.decoding import decode
from vcl_radial.data.fundus.faults import Tell
from vcl_radial.data.fundus.table import Photographs, Unreadable
from vcl_radial.errors import UserError

_FORMAT: Final = 1
_FLUSH: Final = 32 * 2**20
"""Bytes after which a build can be interrupted without loss."""


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
    photographs: Photographs, size: int, crop: bool, jobs: int, tell: Tell
) -> PixelCache:
    """Open the cache of a table, and build it where it is missing, stale or damaged.

    Raises:
        UserError: it cannot be written, or there is not enough space.
    """
    settings = {"format": _FORMAT, "size": size, "crop": crop, "origin": photographs.reader.origin}
    folder = cache_root() / "fundus" / f"{photographs.name}-{size}px-{_digest(settings)[:8]}"
    fingerprint = _fingerprint(photographs, settings)
    words = f"pixels of {photographs.name} at {size} px"
    found, fault = _opened(folder, fingerprint)
    if found is not None:
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, words, tell):
            # Whoever held the lock may have built it.
            found, fault = _opened(folder, fingerprint)
            if found is None:
                tell(f"{words}: {fault}; decoding {len(photographs)} photographs into {folder}")
                _Build(folder, fingerprint, photographs, size, crop).run(jobs, words, tell)
                found, fault = _opened(folder, fingerprint)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written: {error.strerror or error}; free space, or set "
            "XDG_CACHE_HOME to another folder"
        ) from None
    if found is None:
        raise UserError(f"{folder}: {fault} right after it was made; check the disk")
    return found


@contextlib.contextmanager
def _locked(folder: Path, words: str, tell: Tell) -> Iterator[None]:
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell(f"{words}: another process is decoding them; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _opened(folder: Path, fingerprint: str) -> tuple[PixelCache | None, str]:
    """The cache, or None and why there is none."""
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        if index["fingerprint"] != fingerprint:
            return None, "photographs or settings have changed since they were decoded"
        path = folder / index["pixels"]
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != index["sha256"]:
                return None, f"{path.name} is damaged (its checksum is wrong)"
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
        return PixelCache(pixels, dict(index["unreadable"])), ""
    except FileNotFoundError as error:
        if Path(error.filename).name == "index.json":
            return None, "not decoded yet"
        return None, f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, KeyError, TypeError):
        return None, "index.json is damaged"


class _Build:
    """Decodes a table, row after row, into a file that is named when it is complete."""

    def __init__(
        self, folder: Path, fingerprint: str, photographs: Photographs, size: int, crop: bool
    ) -> None:
        self.folder, self.fingerprint, self.photographs = folder, fingerprint, photographs
        self.size, self.crop = size, crop
        self.pixels, self.notes = folder / "partial.npy", folder / "partial.json"
        self.bytes_per_row = 3 * size * size
        self.unreadable: dict[str, str] = {}

    def run(self, jobs: int, words: str, tell: Tell) -> None:
        """Decode what is left, and put index and pixels in place."""
        done = self._done_before()
        if done:
            tell(f"{words}: goes on after {done} photographs")
        to_come = (len(self.photographs) - done) * self.bytes_per_row
        if (free := shutil.disk_usage(self.folder).free) < to_come:
            raise UserError(
                f"{self.folder}: decoding takes {to_come / 1e9:.1f} GB, and {free / 1e9:.1f} GB "
                "are free; free space, choose a smaller size, or set XDG_CACHE_HOME"
            )
        with self.pixels.open("r+b" if done else "wb") as file:
            self._start(file, done)
            unsaved = 0
            rows = self.photographs.rows[done:]
            for k, decoded in enumerate(
                decode(self.photographs.reader, rows, self.size, self.crop, jobs, words, tell)
            ):
                if isinstance(decoded, str):
                    self.unreadable[rows[k].name] = decoded
                    decoded = np.zeros((3, self.size, self.size), np.uint8)  # noqa: PLW2901
                file.write(decoded.tobytes())
                unsaved += self.bytes_per_row
                if unsaved >= _FLUSH:
                    self._save(file, done + k + 1)
                    unsaved = 0
            self._save(file, len(self.photographs))
        self._finish()

    def _done_before(self) -> int:
        """How many rows an interrupted build has left behind."""
        try:
            notes = json.loads(self.notes.read_text(encoding="utf-8"))
            if notes["fingerprint"] != self.fingerprint:
                return 0
            done, self.unreadable = int(notes["done"]), dict(notes["unreadable"])
            there = self.pixels.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        return done if there >= len(self._header()) + done * self.bytes_per_row else 0

    def _start(self, file: Any, done: int) -> None:
        """Go to where the next row is to be written."""
        if not done:
            self.unreadable = {}
            file.write(self._header())
        else:
            file.truncate(len(self._header()) + done * self.bytes_per_row)
            file.seek(0, os.SEEK_END)

    def _header(self) -> bytes:
        """That of an `.npy` file of all rows."""
        buffer = io.BytesIO()
        shape = (len(self.photographs), 3, self.size, self.size)
        description = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(buffer, description)
        return buffer.getvalue()

    def _save(self, file: Any, done: int) -> None:
        file.flush()
        os.fsync(file.fileno())
        notes = {"fingerprint": self.fingerprint, "done": done, "unreadable": self.unreadable}
        atomic.write(self.notes, json.dumps(notes).encode())

    def _finish(self) -> None:
        with self.pixels.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"pixels-{sha256[:16]}.npy"
        self.pixels.replace(self.folder / name)
        index = {
            "fingerprint": self.fingerprint,
            "pixels": name,
            "sha256": sha256,
            "unreadable": self.unreadable,
        }
        atomic.write(self.folder / "index.json", json.dumps(index).encode())
        for path in [self.notes, *self.folder.glob("pixels-*.npy")]:
            if path.name != name:
                with contextlib.suppress(OSError):  # on some systems while somebody reads it
                    path.unlink()


def _fingerprint(photographs: Photographs, settings: dict[str, Any]) -> str:
    versions = []
    for row in photographs.rows:
        try:
            version = photographs.reader.version(row)
        except Unreadable as why:
            version = str(why)
        versions.append([row.name, version])
    text = [Path(module.__file__ or "").read_text("utf-8") for module in (prepare, files)]
    return _digest([settings, versions, text])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
