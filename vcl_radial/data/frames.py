"""CSV files as frames of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.errors import DataError
from vcl_radial.files.rows import read_rows

if TYPE_CHECKING:
    import pandas as pd


def read_frame(path: Path) -> pd.DataFrame:
    """Return the cells of `rows.read_rows`; the label of a row is its number in the file.

    Raises:
        DataError: see `rows.read_rows`; or there are no rows.
    """
    import pandas as pd

    rows = dict(read_rows(path))
    header = rows.pop(1)
    if not rows:
        raise DataError("holds no rows; copy it again", at=path)
    return pd.DataFrame([*rows.values()], index=[*rows], columns=header, dtype=object)
