"""Checks of the headers of files that a benchmark names: a CSV table or features of images.

The module imports nothing heavy, so that a command can report a wrong file at once.
"""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from vcl_radial.data.data_files import expanded
from vcl_radial.errors import DataError, nearest, visible
from vcl_radial.files.reading import LARGE, data_errors, open_file
from vcl_radial.files.rows import read_rows

_SHOWN: Final = 20
"""Number of columns that a message lists."""


def check_feature_file(path: Path, rows: tuple[int, int] | None = None) -> None:
    """Check that a file has the arrays `train` `[N, D]` and `test` `[M, D]`, by their headers.

    Args:
        path: path of an .npz file.
        rows: N and M, if they are known.

    Raises:
        DataError: the file does not exist, is not an .npz file, or its arrays have other shapes.
    """
    fix = "write it with numpy.savez(FILE, train=..., test=...)"
    with data_errors(path, fix), open_file(path) as content, zipfile.ZipFile(content) as file:
        names = {name.removesuffix(".npy") for name in file.namelist()}
        if missing := sorted({"train", "test"} - names):
            raise DataError(f"has no array {missing[0]!r}; {fix}", at=path)
        widths = [
            _width(path, file, name, count)
            for name, count in zip(("train", "test"), rows or (None, None), strict=True)
        ]
    if widths[0] != widths[1]:
        raise DataError(
            f"rows of train have {widths[0]} numbers and rows of test {widths[1]}; write "
            "features of one network",
            at=path,
        )


def _width(path: Path, file: zipfile.ZipFile, name: str, count: int | None) -> int:
    """The width D of an array of a feature file; `count` is its number of rows, if known.

    Raises:
        DataError: the array has another shape or size, or no real numbers.
    """
    from numpy.lib import format as npy

    try:
        size = file.getinfo(f"{name}.npy").file_size
        with file.open(f"{name}.npy") as array:
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, _, dtype = read[npy.read_magic(array)](array)
    except Exception:  # the header is Python's syntax, and fails in many ways
        raise DataError(f"{name} cannot be read; write the file again", at=path) from None
    if dtype.kind not in "fiub":
        raise DataError(f"{name} has to hold real numbers, and is of type {dtype}", at=path)
    if len(shape) != 2 or min(shape) < 1 or count not in (None, shape[0]):
        raise DataError(
            f"{name} must be [{count or 'N'}, D], a row for each image, and is {[*shape]}", at=path
        )
    if not math.prod(shape) * dtype.itemsize <= size <= LARGE:
        raise DataError(f"{name} does not hold what its header says; write the file again", at=path)
    return int(shape[1])


def file_path(name: str, toml: Path | None = None) -> Path:
    """The file that a benchmark names: the CSV file of `table`, or that of `features`.

    A relative path starts from the folder of the benchmark's TOML file if the file exists there,
    else from the current folder, as on the command line.

    Args:
        name: path in the benchmark.
        toml: the TOML file; None for a built-in benchmark.
    """
    path = expanded(Path(name))
    if toml is not None and (neighbour := toml.parent / path).is_file():
        return neighbour
    return path


def check_table(path: Path, target: str) -> None:
    """Check that a CSV file has a column of targets and columns to predict it from.

    It reads only the header, so that a command can report at once; see `data.tables.load_table`.

    Raises:
        DataError: a column is missing; names the file, and the nearest column.
    """
    _, columns = next(read_rows(path))
    if "" in columns:
        raise DataError(
            f"column {columns.index('') + 1} has no name; name it if it is an input, else "
            "delete it",
            at=path,
        )
    check_columns(path, columns, [target, *columns])
    if len(columns) == 1:
        raise DataError(f"has one column only, {target!r}; add columns to predict it from", at=path)


def check_columns(path: Path, columns: Sequence[str], names: Iterable[str]) -> None:
    """Check that a table has just one column of each of these names.

    Raises:
        DataError: it has none, or two; names the nearest column.
    """
    counts = Counter(columns)
    for name in names:
        if name not in counts:
            shown = ", ".join(map(visible, columns[:_SHOWN]))
            raise DataError(
                f"has no column {name!r}; did you mean {nearest(name, columns)!r}? "
                f"columns: {shown}{', ...' * (len(columns) > _SHOWN)}",
                at=path,
            )
        if counts[name] > 1:
            raise DataError(f"has two columns {name!r}; rename or delete one", at=path)
