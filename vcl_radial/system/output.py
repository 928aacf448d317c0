"""Standard output and standard error never stop a command: lost text is dropped and recorded.

A closed reader (`vcl-radial run ... | head -3`) or a full device behind the output must not change
the outcome of a run.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

from vcl_radial.errors import visible_lines

_STANDARD = (0, 1, 2)
"""The descriptors of standard input, standard output and standard error."""


@dataclass
class Lost:
    """A record of text that could not be written.

    Attributes:
        errors: errors of writing to standard output or standard error, except that the reader has
            closed it.
    """

    errors: list[OSError] = field(default_factory=list)


class _Unfailing(io.RawIOBase):
    """Writes to a file descriptor until a write fails, and discards the rest."""

    def __init__(self, descriptor: int, lost: Lost) -> None:
        self._descriptor, self._lost, self._open = descriptor, lost, True

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        content = memoryview(data)
        if not self._open:
            return len(content)
        try:
            return os.write(self._descriptor, content)
        except OSError as error:
            self._open = False
            if error.errno not in (errno.EPIPE, errno.EBADF):
                self._lost.errors.append(error)
            return len(content)


class Visible:
    """A text stream that shows control characters as codes, so that no name moves the cursor.

    Attributes:
        raw: the underlying stream, for code that draws on a terminal.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text with line feeds and tabs, and without other control characters."""
        self.raw.write(visible_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def terminal(stream: Any) -> Any:
    """The stream below a `Visible` one, on which the suite draws progress bars."""
    return stream.raw if isinstance(stream, Visible) else stream


def open_closed_streams() -> None:
    """Open the null device for closed standard streams of this process and its children.

    Otherwise a file that is opened later would get one of these descriptors, and with it the
    printed text.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD[-1]:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            null = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
            setattr(sys, name, null)


@contextmanager
def unfailing_output() -> Iterator[Lost]:
    """Keep printing inside from raising errors.

    Control characters, and characters that the encoding lacks, are printed as codes.
    """
    lost = Lost()
    before = sys.stdout, sys.stderr
    streams: list[Any] = [Visible(_unfailing(stream, lost)) for stream in before]
    sys.stdout, sys.stderr = streams
    try:
        yield lost
    finally:
        for stream in streams:
            with suppress(ValueError):  # the stream was closed inside
                stream.flush()
        if (sys.stdout, sys.stderr) == tuple(streams):
            sys.stdout, sys.stderr = before


def _unfailing(stream: TextIO, lost: Lost) -> TextIO:
    """A stream that never fails; the stream itself if it is no file of the operating system."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = getattr(stream.buffer, "raw", stream.buffer)  # Python without buffers has no `raw`
    if not isinstance(raw, io.FileIO):
        stream.reconfigure(errors="backslashreplace")
        return stream
    with suppress(OSError):
        stream.flush()
    unfailing: Any = _Unfailing(raw.fileno(), lost)
    return io.TextIOWrapper(
        unfailing if raw is stream.buffer else io.BufferedWriter(unfailing),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
