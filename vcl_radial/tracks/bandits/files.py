"""Paths and checksums of the bandits' tables."""

from __future__ import annotations

from pathlib import Path

from vcl_radial.data.data_files import DATA_VARIABLE, files_checksum, user_root
from vcl_radial.errors import UserError
from vcl_radial.tracks.bandits.settings import FILES


def path_of(table: str, data_dir: Path | None) -> Path:
    """The file of a table: `bandits/NAME.csv.gz` in the data folder.

    Raises:
        UserError: no data folder is named, or it does not exist.
    """
    root = user_root(data_dir)
    if root is None:
        raise UserError(
            f"{table}: name the data folder that holds bandits/{FILES[table]} with --data-dir or "
            f"{DATA_VARIABLE}"
        )
    return root / "bandits" / FILES[table]


def checksum(table: str, data_dir: Path | None) -> str:
    """The checksum of a table's file, so that games on other rows count as other games.

    Raises:
        UserError: see `path_of`.
        DataError: the file is missing or cannot be read.
    """
    return files_checksum([path_of(table, data_dir)])
