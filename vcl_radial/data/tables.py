"""Tables in CSV files: one reader for published ones and for a user's own.

Cells are read as text and turned into numbers one by one, so that every fault names its row and
column. Rows are counted as a spreadsheet counts them: the header is row 1.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.frames import read_frame
from vcl_radial.data.streams.choices import check_count
from vcl_radial.data.streams.tensors import tensors_checksum
from vcl_radial.errors import DataError, UserError
from vcl_radial.named_files import check_table, table_header

if TYPE_CHECKING:
    import pandas as pd

MISSING: Final = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL"})
"""Cells that hold no value."""

FEWEST_ROWS: Final = 20
"""Of a user's own table: 18 rows to learn from and 2 to score on."""


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
        """The training rows alone, cut into rows to learn from and rows to choose by.

        The test rows of this split play no part in it.

        Raises:
            UserError: one of the two parts would be empty.
        """
        held_out = round(fraction * len(self.train))
        if not 0 < held_out < len(self.train):
            raise UserError(
                f"validation = {fraction} of {len(self.train)} training rows leaves "
                f"{held_out} to choose by and {len(self.train) - held_out} to learn from; change it"
            )
        order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(seed))
        rows = self.train[order]
        return Split(rows[held_out:].sort().values, rows[:held_out].sort().values)


@dataclass(frozen=True)
class RegressionData:
    """A table in its original units, and its splits.

    Attributes:
        name: of the set.
        x: inputs `[N, d]`, float64.
        y: targets `[N]`, float64.
        splits: of the rows.
        hidden: units of the hidden layer with which the set is compared in the literature.
    """

    name: str
    x: Tensor
    y: Tensor
    splits: tuple[Split, ...]
    hidden: int = 50

    @cached_property
    def checksum(self) -> str:
        """Of rows and splits: results of other ones under the same name are others."""
        rows = (rows for split in self.splits for rows in (split.train, split.test))
        return tensors_checksum(self.x, self.y, *rows)


def load_table(path: Path, target: str, splits: int = 20) -> RegressionData:
    """Read a user's own CSV file: every column but the target is an input.

    A column of numbers is one input. A column of texts is one input for each text, in the order of
    the texts, 1 where the row has it, else 0. Commas, semicolons or tabs separate the columns; a
    file whose name ends in `.gz` is decompressed.

    Args:
        path: the file; `named_files.file_path` finds what a benchmark names.
        target: the column to be predicted.
        splits: how many; see `random_splits`.

    Raises:
        UserError: `splits` is no whole number from 1.
        DataError: the file is missing, damaged or no table; a column is not there; a value is
            missing, not a number or not finite; there is nothing to learn. Names file, row and
            column.
    """
    check_count("splits", splits)
    check_table(path, target)
    _, separator = table_header(path)
    frame = read_frame(path, separator)
    if len(frame) < FEWEST_ROWS:
        raise DataError(
            f"{path}: has {len(frame)} rows besides the header; give it {FEWEST_ROWS} at least, "
            "to learn from and to score on"
        )
    for name, column in frame.items():
        for row in column.index[column.isin(MISSING)][:1]:
            raise DataError(f"{_cell(path, name, row)} is missing; fill it in, or delete the row")
    y = numbers(frame[[target]], path)[:, 0]
    if y.min() == y.max():
        raise DataError(
            f"{path}: column {target!r} is {y[0]:g} in every row; choose another target"
        )
    inputs = [_encoded(frame[[name]], path) for name in frame.columns if name != target]
    x = torch.from_numpy(np.concatenate(inputs, axis=1))
    return RegressionData(path.stem, x, torch.from_numpy(y), random_splits(len(y), splits))


def random_splits(rows: int, splits: int) -> tuple[Split, ...]:
    """Splits of 90 and 10 per cent at random, split k from the seed k."""
    tested = round(rows / 10)
    orders = (np.random.default_rng(seed).permutation(rows) for seed in range(splits))
    return tuple(Split(order[tested:], order[:tested]) for order in map(torch.from_numpy, orders))


def numbers(frame: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    """The numbers in a table of text, `[N, d]`.

    Raises:
        DataError: a cell is not a finite number; names its row and column.
    """
    with contextlib.suppress(ValueError):
        values = frame.to_numpy(dtype=object).astype(np.float64)
        if np.isfinite(values).all():
            return values
    for name, column in frame.items():
        for row, text in column.items():
            number = _number(text)
            if number is None or not math.isfinite(number):
                kind = "not a number" if number is None else "not finite"
                where = _cell(path, name, row)
                raise DataError(f"{where} is {text!r}, {kind}; mend it, or delete the row")
    raise AssertionError("one of the cells is no finite number")


def _encoded(column: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    """A column of numbers as it is, `[N, 1]`; one of K texts as K columns of 0 and 1, `[N, K]`."""
    import pandas as pd

    (texts,) = (column[name] for name in column)
    kinds = [_number(text) is not None for text in texts]
    if 2 * sum(kinds) >= len(kinds):  # else one mistyped number would make texts of all others
        return numbers(column, path)
    encoded = pd.get_dummies(texts).to_numpy(dtype="float64")
    if encoded.shape[1] == len(texts):
        raise DataError(
            f"{path}: column {texts.name!r} has another text in every row, from which nothing can "
            "be learned; take it out"
        )
    return encoded


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _cell(path: Path, column: Any, row: Any) -> str:
    return f"{path}: row {row + 2}, column {column!r}"
