"""Read the tables in the folder of a finished run."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.errors import DataError
from vcl_radial.files.reading import LARGE, read_text


def stored_table(
    path: Path, columns: Iterable[str], types: Mapping[str, type], **options: Any
) -> pd.DataFrame:
    """Read a CSV file of a run.

    The checksums of a run show whether its files were altered; this finds a file of another kind.

    Args:
        path: the file.
        columns: the columns that it must have; it may have more.
        types: types of columns.
        options: options of `pandas.read_csv`.

    Raises:
        DataError: the file cannot be read, a column is missing or a value of another type; the
            message names the file.
    """
    try:
        table: pd.DataFrame = pd.read_csv(
            io.StringIO(read_text(path, LARGE)), dtype=dict(types), **options
        )
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {error}; run it again", path.name) from None
    if missing := [name for name in columns if name not in table]:
        raise DataError(f"has no column {missing[0]!r}; run it again", path.name)
    return table
