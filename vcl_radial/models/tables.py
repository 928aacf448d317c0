"""Tables of predictions, written a batch at a time: CSV, or Parquet by pyarrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from vcl_radial.errors import UserError
from vcl_radial.files import atomic
from vcl_radial.files.atomic import not_written

Columns: TypeAlias = Mapping[str, type[str] | type[float]]
"""The columns of a table with the types of their values, in order."""

Write: TypeAlias = Callable[[Sequence[Sequence[Any]]], None]
"""Writes rows, given by columns of equal length; None is an empty cell."""


@contextmanager
def open_table(path: Path, columns: Columns) -> Iterator[Write]:
    """Open a table that is there whole at the end, or not at all.

    A path that is no regular file, such as a pipe, gets the rows as CSV at once, until its reader
    closes it.

    Args:
        path: the file, by its ending .csv or .parquet.
        columns: the columns.

    Raises:
        UserError: the file cannot be written, has another ending, or pyarrow is not installed.
    """
    stream = path.exists() and not path.is_file() and not path.is_dir()
    if not stream and path.suffix not in _WRITERS:
        raise UserError("must end in .csv or .parquet", at=path)
    writer = _WRITERS[".csv" if stream else path.suffix]
    opened = path.open("wb") if stream else atomic.replacing(path)
    try:
        with opened as file, writer(file, columns) as write:
            yield write
    except BrokenPipeError:
        if not stream:
            raise
    except OSError as error:
        raise not_written(path, error) from None


@contextmanager
def _csv(file: BinaryIO, columns: Columns) -> Iterator[Write]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", errors="backslashreplace")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(columns)

    def write(values: Sequence[Sequence[Any]]) -> None:
        rows.writerows(zip(*(map(_cell, column) for column in values), strict=True))

    yield write
    text.flush()
    text.detach()


def _cell(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


@contextmanager
def _parquet(file: BinaryIO, columns: Columns) -> Iterator[Write]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UserError(
            "a Parquet file needs pyarrow: pip install pyarrow, or name a .csv file"
        ) from None
    types = {str: pa.string(), float: pa.float32()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(file, schema) as writer:
        yield lambda values: writer.write_table(pa.table([*values], schema=schema))


_WRITERS: Mapping[str, Callable[[BinaryIO, Columns], AbstractContextManager[Write]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
}
