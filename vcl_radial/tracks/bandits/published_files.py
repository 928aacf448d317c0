"""Tables that are read in the format in which Riquelme, Tucker and Snoek (2018) published them.

- financial: `raw_stock_contexts`, a header line and 3,713 days with the price differences of 21
  stocks, separated by blanks.
- jester: `jester_data_40jokes_19181users.npy`, the ratings of 40 jokes, from -10 to 10.
- covertype: `covtype.data` of UCI, 581,012 rows of 54 numbers and one of 7 classes, without a
  header; the numbers are standardised.
- census: `USCensus1990.data.txt` of UCI, 2,458,285 rows with a header; `dOccup` is one of 9
  classes, `caseid` is left out, and the other 67 columns of codes become one column for each code,
  standardised. They are expanded for the rows of a game alone: of all rows it would be 4 GB.
"""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vcl_radial.data.named_files import check_columns
from vcl_radial.errors import DataError
from vcl_radial.files.reading import SMALL, data_errors, open_data
from vcl_radial.files.rows import read_rows
from vcl_radial.tracks.bandits.table import Table, standardised

STOCKS, JOKES, PORTFOLIOS, ARMS = 21, 40, 8, 8


def financial(path: Path) -> Table:
    """Price differences of 21 stocks; a game draws the portfolios.

    Raises:
        DataError: the file is missing, damaged or not this table.
    """
    contexts = _finite(_read(path, "float64", sep=r"\s+", skiprows=1), STOCKS, path)
    return _without_labels("financial", contexts, PORTFOLIOS)


def jester(path: Path) -> Table:
    """Ratings of 40 jokes; a game draws which of them are its arms.

    Raises:
        DataError: the file is missing, damaged or not this table.
    """
    with data_errors(path), open_data(path, SMALL) as file:
        content = io.BytesIO(file.read())
        try:
            array = np.lib.format.read_array(content, allow_pickle=False)
        except Exception as error:  # the header is Python's syntax, and fails in many ways
            raise ValueError(f"no array of numbers: {error}") from None
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError("is not a table of numbers; copy it again", at=path)
    ratings = _finite(pd.DataFrame(array), JOKES, path)
    if ratings.abs().max() > 10:
        raise DataError("has a rating that is not from -10 to 10; copy it again", at=path)
    return _without_labels("jester", ratings, ARMS)


def covertype(path: Path) -> Table:
    """54 numbers of a piece of forest; the label is one of 7 types of trees.

    Raises:
        DataError: the file is missing, damaged or not this table.
    """
    numbers = _finite(_read(path, "float64"), 55, path)
    labels = _classes(numbers[:, -1] - 1, 7, path)
    return Table("covertype", standardised(numbers[:, :-1]), labels, 7, len(labels))


def census(path: Path) -> Table:
    """67 codes of a person; the label is one of 9 groups of occupations.

    Raises:
        DataError: the file is missing, damaged or not this table.
    """
    _, names = next(read_rows(path))
    check_columns(path, names, ("caseid", "dOccup"))
    kept = [number for number, name in enumerate(names) if name != "caseid"]
    frame = _read(path, "uint8", skiprows=1, usecols=kept)
    frame.columns = pd.Index([names[number] for number in kept])
    labels = _classes(torch.tensor(frame.pop("dOccup").to_numpy()), 9, path)
    if frame.shape[1] != 67:
        raise DataError(
            f"has {frame.shape[1] + 2} columns, not 69; copy the coded file again", at=path
        )
    codes = torch.tensor(frame.to_numpy())
    shares = [torch.bincount(column, minlength=256) / len(codes) for column in codes.unbind(1)]
    column, code = torch.stack(shares).nonzero(as_tuple=True)
    encode = partial(_one_hot, column, code, torch.stack(shares)[column, code])
    return Table("census", codes, labels, 9, len(codes), encode)


def _one_hot(column: Tensor, code: Tensor, share: Tensor, codes: Tensor) -> Tensor:
    """Whether each column has each of its codes, `[m, d]`, standardised by the codes' shares."""
    scale = (share * (1 - share)).sqrt()
    return ((codes[:, column] == code).float() - share) / torch.where(scale > 0, scale, 1.0)


def _read(path: Path, dtype: str, **options: Any) -> pd.DataFrame:
    """The numbers of a file; each row has as many as the first."""
    with data_errors(path), open_data(path) as file:
        try:
            frame: pd.DataFrame = pd.read_csv(file, header=None, dtype=dtype, **options)
        except OverflowError as error:
            raise ValueError(str(error)) from None
    return frame


def _finite(frame: pd.DataFrame, columns: int, path: Path) -> Tensor:
    """The numbers of a frame of so many columns, float32."""
    if frame.shape[1] != columns:
        raise DataError(f"has {frame.shape[1]} columns, not {columns}; copy it again", at=path)
    numbers = torch.tensor(frame.to_numpy("float64"), dtype=torch.float32)
    if not bool(numbers.isfinite().all()):
        raise DataError("has a value that is missing or not finite; copy it again", at=path)
    return numbers


def _classes(labels: Tensor, classes: int, path: Path) -> Tensor:
    """Labels from 0 as int64."""
    if not bool(torch.isin(labels, torch.arange(classes)).all()):
        raise DataError(
            f"has a label that is none of its {classes} classes; copy it again", at=path
        )
    return labels.long()


def _without_labels(name: str, contexts: Tensor, actions: int) -> Table:
    labels = torch.zeros(len(contexts), 0, dtype=torch.int64)
    return Table(name, contexts, labels, actions, len(contexts))
