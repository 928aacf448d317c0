"""Checksums of a run's photographs, so that a run on other data is another run.

The checksums need labels, but no pixels and no PyTorch: a missing folder is reported at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path

from vcl_radial.data.data_files import user_root
from vcl_radial.data.fundus import Photographs, load_photographs
from vcl_radial.data.fundus.faults import OnFault
from vcl_radial.tracks.retinopathy.settings import DataSettings


def checksum(data: DataSettings, data_dir: Path | None = None) -> str | None:
    """The checksum of the photographs' names, labels and sizes; None if all are drawn.

    Raises:
        UserError: the labels cannot be read.
    """
    names = tuple(name for name in data.names if name != "synthetic")
    return _checksum(names, data.on_fault, data_dir, user_root(data_dir)) if names else None


@lru_cache(maxsize=8)  # a search makes many runs on the same data
def _checksum(
    names: tuple[str, ...], on_fault: OnFault, data_dir: Path | None, root: Path | None
) -> str:
    """The checksum of the photographs in `data_dir`; `root` is its resolved folder."""
    # Faults are reported when the photographs are prepared.
    load = partial(load_photographs, data_dir=data_dir, on_fault=on_fault, report=lambda line: None)
    return checksum_of((name, load(name)) for name in names)


def checksum_of(tables: Iterable[tuple[str, Photographs]]) -> str:
    """The checksum of tables of photographs, each with a name."""
    content = hashlib.sha256()
    for name, photographs in tables:
        for row in photographs.rows:
            size = row.path.stat().st_size if row.path and row.path.is_file() else 0
            fields = (name, row.name, row.patient, row.eye, row.grade, row.site, row.part, size)
            content.update(json.dumps(fields).encode())
    return content.hexdigest()[:16]
