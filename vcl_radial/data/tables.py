"""Tables in CSV files as numbers: published ones and a user's own.

Cells are read as text and converted to numbers one by one, so that every fault names its row,
counted as in `rows`, and its column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.cells import (
    NUMBER_WORDS,
    is_missing,
    may_be_number,
    plain_number,
    words_around_numbers,
)
from vcl_radial.data.frames import read_frame
from vcl_radial.data.named_files import check_columns, check_table
from vcl_radial.data.streams.choices import check_count
from vcl_radial.data.streams.tensors import tensors_checksum
from vcl_radial.errors import DataError, bad_value, visible
from vcl_radial.files.rows import read_rows

if TYPE_CHECKING:
    import pandas as pd

MOST_NUMBERS: Final = 1 << 28
"""Largest number of input values of a table, 2 GiB of memory."""

FEWEST_ROWS: Final = 20
"""Smallest number of rows of a user's own table: 18 to learn from and 2 to score on."""

_TRUTH = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Split:
    """The rows of one split; validation rows are taken from the training rows.

    Attributes:
        train: rows to learn from.
        test: rows to score on.
    """

    train: Tensor
    test: Tensor

    def validation(self, fraction: float, seed: int) -> Split:
        """Cut the training rows into rows to learn from and rows to choose by.

        The test rows of this split are not used.

        Raises:
            UserError: one of the two parts would be empty.
        """
        held_out = round(fraction * len(self.train))
        if not 0 < held_out < len(self.train):
            raise bad_value(
                "validation",
                fraction,
                f"of {len(self.train)} training rows leaves {held_out} to choose by and "
                f"{len(self.train) - held_out} to learn from; change it",
            )
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))
        rows = self.train[order]
        return Split(rows[held_out:].sort().values, rows[:held_out].sort().values)


@dataclass(frozen=True)
class RegressionData:
    """A table in its original units, and its splits.

    Attributes:
        name: name of the table.
        x: inputs `[N, d]`, float64.
        y: targets `[N]`, float64.
        splits: splits of the rows.
        hidden: number of hidden units in the literature's comparisons on this table.
        summary: numbers of rows and inputs of a user's own table.
        columns: name of each column of a user's own table that makes inputs, and its texts if it is
            one of texts.
        target: name of the column of targets.
    """

    name: str
    x: Tensor
    y: Tensor
    splits: tuple[Split, ...]
    hidden: int = 50
    summary: str = ""
    columns: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    target: str | None = None

    @cached_property
    def checksum(self) -> str:
        """Checksum of rows and splits, which distinguishes results of different data."""
        rows = (rows for split in self.splits for rows in (split.train, split.test))
        return tensors_checksum(self.x, self.y, *rows)


def load_table(path: Path, target: str, splits: int = 20) -> RegressionData:
    """Read a user's own CSV file: every column but the target is an input.

    A column of numbers is one input. A column of texts is one input per text, in the order of the
    texts, 1 if the row has it, else 0. `cells` defines numbers, and `rows` the file format.

    Args:
        path: the file; `named_files.file_path` finds the file of a benchmark.
        target: name of the column to predict.
        splits: number of splits; see `random_splits`.

    Raises:
        UserError: `splits` is not a whole number of at least 1.
        DataError: the file is missing, damaged or not a table; a column is missing; a value is
            missing, not a number or not finite; there is nothing to learn. Names file, row and
            column.
    """
    check_count("splits", splits)
    check_table(path, target)
    frame = read_frame(path)
    if len(frame) < FEWEST_ROWS:
        raise DataError(
            f"has {len(frame)} rows besides the header; give it {FEWEST_ROWS} at least, "
            "to learn from and to score on",
            at=path,
        )
    y = numbers(frame[[target]], path)[:, 0]
    if y.min() == y.max():
        raise DataError(
            f"column {target!r} is {y[0]:g} in every row; choose another target", at=path
        )
    inputs: list[NDArray[np.float64]] = []
    encoding: list[tuple[str, tuple[str, ...] | None]] = []
    width = texts = 0
    for name, column in frame.items():
        if name == target:
            continue
        columns, kinds = _encoded(column, path, MOST_NUMBERS // len(frame) - width)
        inputs.append(columns)
        encoding.append((str(name), kinds))
        width, texts = width + columns.shape[1], texts + (kinds is not None)
    numeric = len(inputs) - texts
    encoded = f", {texts:,} of texts as {width - numeric:,} columns" if texts else ""
    summary = (
        f"{len(frame):,} rows, {len(inputs):,} input{'s' * (len(inputs) > 1)} "
        f"({numeric:,} of numbers{encoded})"
    )
    x = torch.from_numpy(np.concatenate(inputs, axis=1))
    return RegressionData(
        path.stem,
        x,
        torch.from_numpy(y),
        random_splits(len(y), splits),
        summary=summary,
        columns=tuple(encoding),
        target=target,
    )


def load_rows(
    path: Path, columns: Sequence[tuple[str, Sequence[str] | None]], target: str
) -> tuple[Tensor, Tensor | None]:
    """Read further rows of a table, encoded as its `RegressionData.columns`.

    Returns:
        Inputs `[N, d]` and targets `[N]`, float64; None without the column of targets. The columns
        may have another order, and others are ignored.

    Raises:
        DataError: the file is missing, damaged or not such a table; names file, row and column.
    """
    _, header = next(read_rows(path))
    has_target = target in header
    check_columns(path, header, [*[target] * has_target, *(name for name, _ in columns)])
    frame = read_frame(path)
    inputs = []
    for name, kinds in columns:
        column = frame[name]
        if kinds is None:
            values = [_TRUTH.get(text.lower(), plain_number(text)) for text in column]
            inputs.append(_numbers(column, values, path)[:, None])
            continue
        for row, text in zip(column.index, column, strict=True):
            if text not in kinds:
                known = ", ".join(map(visible, kinds[:10]))
                raise DataError(
                    f"row {row}, column {name!r} is {text[:50]!r}, which the model has not seen "
                    f"(known: {known}); leave the row out",
                    at=path,
                )
        inputs.append((column.to_numpy()[:, None] == np.array(kinds, object)).astype(np.float64))
    x = torch.from_numpy(np.concatenate(inputs, axis=1))
    return x, torch.from_numpy(numbers(frame[[target]], path)[:, 0]) if has_target else None


def random_splits(rows: int, splits: int) -> tuple[Split, ...]:
    """Random splits into 90 and 10 per cent; split k has the seed k."""
    tested = round(rows / 10)
    orders = (np.random.default_rng(seed).permutation(rows) for seed in range(splits))
    return tuple(Split(order[tested:], order[:tested]) for order in map(torch.from_numpy, orders))


def numbers(frame: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    """The numbers in a table of text, `[N, d]`.

    Raises:
        DataError: a cell is not a plain finite number; names its row and column.
    """
    columns = [_numbers(c, [plain_number(text) for text in c], path) for _, c in frame.items()]
    return np.stack(columns, axis=1)


def _numbers(column: pd.Series[str], values: list[float | None], path: Path) -> NDArray[np.float64]:
    """The values of a column of numbers, `[N]`."""
    for row, text, value in zip(column.index, column, values, strict=True):
        if value is None or not math.isfinite(value):
            raise _refused(path, column.name, row, text)
    return np.array(values, dtype=np.float64)


def _encoded(
    column: pd.Series[str], path: Path, limit: int
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Return the inputs of a column, and its texts if it is a column of texts.

    A column of numbers becomes `[N, 1]`, and so does a column of true and false, as 1 and 0. A
    column of K texts becomes K columns of 0 and 1, `[N, K]`.

    Args:
        column: the cells.
        path: path of the file.
        limit: largest number of inputs of the column.

    Raises:
        DataError: a cell is missing, or may be a number in a column of texts; there are too many
            texts; names row and column.
    """
    cells = column.to_numpy()
    values = [plain_number(text) for text in cells]
    counts = Counter(text for text, value in zip(cells, values, strict=True) if value is None)
    if not counts:
        return _numbers(column, values, path)[:, None], None
    if len(column) == sum(count for text, count in counts.items() if text.lower() in _TRUTH):
        return np.array([[float(_TRUTH[text.lower()])] for text in cells]), None
    texts = sum(count for text, count in counts.items() if text.lower() not in NUMBER_WORDS)
    has_numbers = counts.total() < len(column)
    # One mistyped number must not turn all others into texts.
    are_numbers = 2 * texts <= len(column) if has_numbers else not texts
    for text in counts:  # in the order of the rows
        if are_numbers or is_missing(text) or may_be_number(text):
            raise _refused(path, column.name, column.index[cells == text][0], text)
    if not has_numbers and (form := words_around_numbers(counts)):
        raise DataError(
            f"column {column.name!r} has {form!r} in every row, with a number for #: write "
            "the number alone, and the rest into the column's name, or a letter before it if it is "
            "a text",
            at=path,
        )
    kinds, kind_of_row = np.unique(cells, return_inverse=True)
    if len(kinds) == len(column):
        raise DataError(
            f"column {column.name!r} has another text in every row, from which nothing can "
            "be learned; take it out",
            at=path,
        )
    if len(kinds) > limit:
        raise DataError(
            f"column {column.name!r} has {len(kinds):,} texts, each of which is an input, "
            f"and the inputs of all rows would be more than {MOST_NUMBERS:,} numbers; take it out",
            at=path,
        )
    return (kind_of_row[:, None] == np.arange(len(kinds))).astype(np.float64), tuple(kinds)


def _refused(path: Path, column: Any, row: Any, text: str) -> DataError:
    """The error for a cell, with the fix."""
    if is_missing(text):
        fault = f"is {text[:50]!r}, a missing value; fill it in"
    elif plain_number(text) is not None:
        fault = f"is {text[:50]!r}, not finite; write another number"
    else:
        fix = "write one such as -1234.5 or 2e-3, add a letter if it is a text"
        fault = f"is {text[:50]!r}, not a plain number; {fix}"
    return DataError(f"row {row}, column {column!r} {fault}, or delete the row", at=path)
