"""CSV files as frames of text, read without PyTorch, so that a command can name a fault at once."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def read_frame(path: Path, separator: str = ",") -> pd.DataFrame:
    """Read a file of cells as text, without outer spaces and without rows that are empty.

    The label of a row is its place in the file, so that a fault can name it.

    Args:
        path: the file, gzip-compressed if its name ends in `.gz`.
        separator: of the columns, whose names are in the first row.

    Raises:
        DataError: it is missing, cut off, damaged, or no table in UTF-8; or it holds no rows.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # Of a first row that is longer than the header: all columns would be misplaced.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                path,
                sep=separator,
                index_col=False,
                dtype=str,
                keep_default_na=False,
                skip_blank_lines=False,
                encoding="utf-8-sig",
            )
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; copy it there") from None
    except OSError as error:
        # A damaged gzip header is an OSError too, without a number.
        reason = error.strerror or str(error)
        raise DataError(f"{path}: cannot be read ({reason}); copy it again") from None
    except (EOFError, zlib.error, ValueError, pd.errors.ParserWarning) as error:
        if fault := _long_row(path, separator):
            raise DataError(f"{path}: {fault}") from None
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path}: damaged, or no table of text in UTF-8 ({reason}); copy it again"
        ) from None
    frame = frame.fillna("").apply(_stripped)
    frame.columns = frame.columns.str.strip()
    if (frame.iloc[:, 0] == "").any():
        frame = frame[(frame != "").any(axis=1)]
    if frame.empty:
        raise DataError(f"{path}: holds no rows; copy it again")
    return frame


def _long_row(path: Path, separator: str) -> str | None:
    """The first row with more fields than the header, and the mend; None where there is none."""
    open_text = gzip.open if path.suffix == ".gz" else open
    with (
        suppress(OSError, EOFError, ValueError, zlib.error, csv.Error),
        open_text(path, "rt", encoding="utf-8-sig", newline="") as file,
    ):
        header, *rows = csv.reader(file, delimiter=separator)
        for number, row in enumerate(rows, start=2):
            if len(row) > len(header):
                return (
                    f"row {number} has {len(row)} fields, and the header {len(header)}: delete "
                    f"what is too much, or put a text that holds {separator!r} in double quotes"
                )
    return None


def _stripped(column: pd.Series[str]) -> pd.Series[str]:
    """Without outer spaces; a text that comes often is looked at once."""
    spaced = {text: text.strip() for text in column.unique() if text != text.strip()}
    return column.map(lambda text: spaced.get(text, text)) if spaced else column
