"""Read files from outside: only regular files, and only up to a limit of bytes.

Reading a pipe or a device may never end, and a small compressed file can hold more than fits into
memory. Every fault is an `OSError` with `filename` and a `strerror` that describes it, or a
`ValueError` about the content, so that callers handle only these two; `data_errors` reports them.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import stat
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final
from zipfile import BadZipFile

from vcl_radial.errors import DataError

SMALL: Final = 64 << 20
"""Largest size of settings, markers and results in bytes."""
LARGE: Final = 4 << 30
"""Largest size of a data file in bytes, decompressed."""

_DECOMPRESSED: Mapping[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
}
_DEEPEST = 100
"""Largest number of levels of nested values in a file."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_file(path: Path) -> io.BufferedReader:
    """Open a regular file for reading; never wait for a writer.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    # A pipe without a writer makes a plain open wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, f"is {kind}, not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def open_data(path: Path, limit: int = LARGE) -> io.BufferedReader:
    """Open a regular file for reading, decompressed if its name ends in `.gz` or `.xz`.

    Raises:
        OSError: as `open_file`; later, when more than `limit` bytes are read.
    """
    file = open_file(path)
    content: Any = file
    if path.suffix in _DECOMPRESSED:
        content = _DECOMPRESSED[path.suffix](file)
    return io.BufferedReader(_Bounded(path, content, file, limit), 1 << 16)


def open_text(path: Path, limit: int = LARGE) -> io.TextIOWrapper:
    """Open a file as `open_data` does, as UTF-8 text without a byte-order mark; keep line ends."""
    return io.TextIOWrapper(open_data(path, limit), encoding="utf-8-sig", newline="")


def read_bytes(path: Path, limit: int = SMALL) -> bytes:
    """Return the bytes of a regular file, at most `limit` of them.

    Raises:
        OSError: the file cannot be opened, is not a regular file, or is larger.
    """
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limit or len(data := file.read(limit + 1)) > limit:
            raise _too_large(path, limit)
        return data


def read_text(path: Path, limit: int = SMALL) -> str:
    """Return a file as UTF-8 text, without a byte-order mark and with plain line feeds.

    Raises:
        OSError: as `read_bytes`.
        UnicodeDecodeError: the file is not UTF-8.
    """
    return io.IncrementalNewlineDecoder(None, translate=True).decode(
        read_bytes(path, limit).decode("utf-8-sig"), final=True
    )


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table of a TOML file.

    Raises:
        OSError: as `read_bytes`.
        ValueError: the file is not TOML in UTF-8, or is nested too deeply.
    """
    return parse_toml(read_text(path))


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table of a text in TOML.

    Raises:
        ValueError: the text is not TOML, or is nested too deeply.
    """
    table: dict[str, Any] = _not_too_deep(tomllib.loads, text)
    return table


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        OSError: as `read_bytes`.
        ValueError: the file is not JSON in UTF-8, or is nested too deeply.
    """
    return _not_too_deep(json.loads, read_text(path))


@contextmanager
def data_errors(path: Path, fix: str = "copy it again") -> Iterator[None]:
    """Raise the errors of reading a file inside as errors for the user.

    Args:
        path: the file.
        fix: the fix for a file that is damaged, or not of its kind.

    Raises:
        DataError: the file is missing, cannot be read or decompressed, or has a wrong content.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file; copy it there, or name another", at=path) from None
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, BadZipFile) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise DataError(f"cannot be read ({reason}); {fix}", at=path) from None


def checksum(path: Path, limit: int = LARGE) -> str:
    """Return the SHA-256 of the bytes of a regular file, in hexadecimal digits.

    Raises:
        OSError: the file cannot be opened, is not a regular file, or is larger than `limit`.
    """
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise _too_large(path, limit)
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Bounded(io.RawIOBase):
    """A stream that raises an error when it is longer than a limit."""

    def __init__(self, path: Path, content: Any, file: BinaryIO, limit: int) -> None:
        self._path, self._content, self._file = path, content, file
        self._limit, self._read = limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._content.readinto(buffer)
        self._read += count
        if self._read > self._limit:
            raise _too_large(self._path, self._limit)
        return count

    def close(self) -> None:
        self._content.close()
        self._file.close()
        super().close()


def _not_too_deep(parse: Callable[[str], Any], text: str) -> Any:
    """Parse a text, and limit the nesting so that callers can use recursion.

    Raises:
        ValueError: the text cannot be parsed, or its value is nested more than `_DEEPEST` times.
    """
    with suppress(RecursionError):
        level = [value := parse(text)]
        for _ in range(_DEEPEST):
            tables = [inner for inner in level if isinstance(inner, dict)]
            lists = [inner for inner in level if isinstance(inner, list)]
            level = [*chain(*(table.values() for table in tables), *lists)]
            if not level:
                return value
    raise ValueError("its values are nested too deeply")


def _too_large(path: Path, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"holds more than {limit >> 20:,} MiB", str(path))
