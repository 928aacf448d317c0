"""Read CSV files as rows of text, and name the row of every fault.

Rows are counted as in a spreadsheet: the header is row 1 even if it has several lines, and empty
rows count. The module imports nothing heavy, so that a command reports a fault at once.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Final, TextIO

from vcl_radial.errors import DataError
from vcl_radial.files.reading import LARGE, data_errors, open_text

LONGEST_LINE: Final = 1 << 24
"""Largest number of characters in a line."""

MOST_CELLS: Final = 50_000_000
"""Largest number of cells in a table; they take about 4 GiB of memory."""

_SEPARATOR_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)
_IN_QUOTES = re.compile(r'"[^"]*"')


def read_rows(
    path: Path, most_cells: int | None = None, most_bytes: int = LARGE
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each row that is not empty, the header first.

    The separator is the most frequent of comma, semicolon and tab in the header outside double
    quotes, or the one that a first line like `sep=;` names. Outer spaces of cells are removed. A
    cell may have several lines only in the header.

    Args:
        path: the file; gzip-compressed if its name ends in `.gz`.
        most_cells: largest number of cells; None: `MOST_CELLS`, for a caller that keeps them.
        most_bytes: largest size of the file, decompressed.

    Raises:
        DataError: the file is missing, damaged, no table in UTF-8, or larger than the limits; or
            a row is longer or shorter than the header, or a double quote is not closed.
    """
    with data_errors(path, "save it as CSV in UTF-8"), open_text(path, most_bytes) as file:
        yield from _split(path, _lines(file), most_cells or MOST_CELLS)


def _lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; refuse lines that are too long or hold NUL bytes."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise ValueError(f"a line has more than {LONGEST_LINE:,} characters")
        if "\0" in line:
            raise ValueError("it holds NUL bytes")
        yield line


def _header(lines: Iterator[str]) -> tuple[list[str], str]:
    """Read the lines of the header, and return them with the separator of the cells."""
    line = next(lines, "")
    if named := _SEPARATOR_LINE.fullmatch(line.rstrip("\r\n")):
        line = next(lines, "")
    header, quotes, size = [line], line.count('"'), len(line)
    while quotes % 2 and size < LONGEST_LINE and (line := next(lines, "")):
        header.append(line)
        quotes, size = quotes + line.count('"'), size + len(line)
    unquoted = _IN_QUOTES.sub("", "".join(header))
    return header, named[1] if named else max(",;\t", key=unquoted.count)


def _split(path: Path, lines: Iterator[str], most_cells: int) -> Iterator[tuple[int, list[str]]]:
    """Split lines into the rows of `read_rows`."""
    header, separator = _header(lines)
    reader = csv.reader(
        chain(header, lines), delimiter=separator, strict=True, skipinitialspace=True
    )
    number = width = 0
    try:
        for number in count(1):
            if (row := next(reader, None)) is None:
                break
            if reader.line_num != len(header) + number - 1:
                raise _not_split(path, number, "a cell goes over several lines")
            cells = [cell.strip() for cell in row]
            if any(cells):
                if number == 1:
                    width = len(cells)
                    lines_within = [line for cell in row for line in cell.splitlines()[1:]]
                    if any(line.count(separator) >= width - 1 for line in lines_within):
                        raise _not_split(path, 1, "a name goes over a whole row")
                if len(cells) != width:
                    raise DataError(f"row {number} {_misfit(cells, width, separator)}", at=path)
                yield number, cells
            elif number == 1:
                break
            if number * width > most_cells:
                raise DataError(
                    f"has more than {most_cells:,} cells up to row {number:,}; leave out "
                    f"some of its {width:,} columns, or the rows from there on",
                    at=path,
                )
    except csv.Error as error:
        raise _not_split(path, number, str(error)) from None
    if not width:
        raise DataError("is empty, or its first row is; name the columns there", at=path)


def _not_split(path: Path, number: int, reason: str) -> DataError:
    return DataError(
        f"row {number} cannot be split into cells ({reason}); check whether it has a double "
        "quote too many, and write two double quotes for one inside a quoted text",
        at=path,
    )


def _misfit(cells: list[str], width: int, separator: str) -> str:
    """Describe a row that is longer or shorter than the header, and the fix."""
    fix = (
        f"delete what is too much, or put a text that holds {separator!r} in double quotes"
        if len(cells) > width
        else "fill in what is missing, delete a double quote that is too many, or delete the row"
    )
    return f"has {len(cells)} fields, and the header {width}: {fix}"
