"""Paths of the bandits' tables."""

from __future__ import annotations

from pathlib import Path

from vcl_radial.data.data_files import DATA_VARIABLE, user_root
from vcl_radial.errors import UserError

FILES = {
    "mushroom": "mushroom.csv.gz",
    "statlog": "statlog_shuttle.csv.gz",
    "adult": "adult.csv.gz",
    "financial": "raw_stock_contexts",
    "jester": "jester_data_40jokes_19181users.npy",
    "covertype": "covtype.data.gz",
    "census": "USCensus1990.data.txt",
}
"""The file of each table, in the folder `bandits` of the data folder, with or without `.gz`."""


def path_of(table: str, data_dir: Path | None) -> Path:
    """The file of a table: `bandits/NAME` in the data folder, compressed by gzip or not.

    Raises:
        UserError: no data folder is named, or it does not exist.
    """
    root = user_root(data_dir)
    if root is None:
        raise UserError(
            f"{table}: name the data folder that holds bandits/{FILES[table]} with --data-dir or "
            f"{DATA_VARIABLE}"
        )
    path = root / "bandits" / FILES[table]
    other = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
    return other if other.is_file() and not path.is_file() else path
