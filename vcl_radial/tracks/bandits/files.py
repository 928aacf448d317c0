"""Where the tables of the bandits lie, found without reading them."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from vcl_radial.data_files import DATA_VARIABLE, user_root
from vcl_radial.errors import DataError, UserError
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


@lru_cache(maxsize=len(FILES))  # a sweep makes many runs on the same data
def checksum(table: str, data_dir: Path | None) -> str:
    """Of a table's rows: games on other rows under the same name are others.

    Raises:
        UserError: see `path_of`.
        DataError: the file is missing or cannot be read.
    """
    path = path_of(table, data_dir)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; copy it there") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); copy it again") from None
    with suppress(OSError, EOFError, zlib.error):  # whoever reads its rows says what is damaged
        content = gzip.decompress(content)
    return hashlib.sha256(content).hexdigest()[:16]
