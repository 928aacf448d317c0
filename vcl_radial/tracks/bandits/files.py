"""Paths of the bandits' tables."""

from __future__ import annotations

from pathlib import Path

from vcl_radial.data.data_files import DATA_VARIABLE, user_root
from vcl_radial.errors import UserError

FILES = {
    "mushroom": "mushroom.csv.gz",
    "statlog": "statlog_shuttle.csv.gz",
    "adult": "adult.csv.gz",
}
"""The file of each table, in the folder `bandits` of the data folder."""


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
