"""The files of regression tables: their paths, checksums and numbers of splits.

A set is a folder in the layout of Gal and Ghahramani's published experiments, with the splits of
Hernandez-Lobato and Adams (2015): `data.txt` (one row per line), `index_features.txt` and
`index_target.txt` (columns), `index_train_K.txt` and `index_test_K.txt` (rows of split K, from 0),
`n_hidden.txt` (units of the hidden layer; 50 without it).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.data.data_files import DATA_VARIABLE, files_checksum, user_root
from vcl_radial.data.named_files import check_table
from vcl_radial.errors import DataError, UserError

if TYPE_CHECKING:
    from vcl_radial.tracks.regression.settings import DataSettings

FOLDERS = {
    "boston": "bostonHousing",
    "concrete": "concrete",
    "energy": "energy",
    "kin8nm": "kin8nm",
    "naval": "naval-propulsion-plant",
    "power": "power-plant",
    "protein": "protein-tertiary-structure",
    "wine": "wine-quality-red",
    "yacht": "yacht",
}
"""Folders of the nine sets by their names in the papers' tables."""

DIABETES = "diabetes"
"""scikit-learn's 442 patients, which need no files."""

PUBLISHED_SPLITS = {**dict.fromkeys([*FOLDERS, DIABETES], 20), "protein": 5}
"""Number of splits of each set."""

TABLE_SPLITS = 20
"""Default number of splits of a user's table."""


def set_folder(name: str, data_dir: Path | None) -> Path:
    """The folder of a set, in `uci/` in `data_dir`, else in the folder `VCL_RADIAL_DATA`.

    Raises:
        UserError: no data folder is named, or it does not exist.
        DataError: the set's folder is missing.
    """
    root = user_root(data_dir)
    if root is None:
        known = ", ".join(FOLDERS)
        raise UserError(
            f"{name}: name the data folder that holds uci/ with --data-dir or {DATA_VARIABLE} "
            f"(sets: {known}; {DIABETES} needs none)"
        )
    folder = root / "uci" / FOLDERS.get(name, name)
    if not folder.is_dir():
        raise DataError(
            f"{folder}: there is no such folder; put the set's data.txt and index files there, or "
            f"choose from {', '.join([*FOLDERS, DIABETES])}"
        )
    return folder


def checksum(data: DataSettings, data_dir: Path | None) -> str | None:
    """The checksum of the files' bytes; None without files.

    Raises:
        UserError: see `set_folder`.
        DataError: a file cannot be read, or the table has no such target.
    """
    if data.set == DIABETES:
        return None
    if data.set is not None:
        return files_checksum(sorted(set_folder(data.set, data_dir).glob("*.txt")))
    assert data.table is not None
    assert data.target is not None
    check_table(Path(data.table), data.target)
    return files_checksum([Path(data.table)])
