"""What a report wrote into a folder: by this list a later report removes it, and no other file.

A second stream under one `--out` gives a benchmark's report another name, and a method that is gone
leaves its pictures behind. Such files are removed where the manifest beside them lists them with
the checksum that they still have; whatever else lies in the folder stays, and so does the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vcl_radial.files.reading import checksum as checksum_of
from vcl_radial.files.reading import read_bytes
from vcl_radial.runs.folder import write_atomically

FILE = "manifest.json"
OF_ALL = f"*/{FILE}"
"""From the folder that holds the reports."""


class Manifest(BaseModel):
    """The content of `manifest.json`.

    Attributes:
        benchmark: Of which runs the report is.
        runs: Where they lie, as a path from the folder that holds the reports.
        files: SHA-256 checksums by name.
        shown: A checksum of what the pictures were drawn from.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    benchmark: str
    runs: str
    files: dict[str, str]
    shown: str | None = None


def drawn_from(folder: Path, shown: str) -> set[str]:
    """The files of a report that are as they were written, if its pictures show just this."""
    manifest = _read(folder)
    if manifest is None or manifest.shown != shown:
        return set()
    whole = set()
    for name, checksum in manifest.files.items():
        with contextlib.suppress(OSError):  # what cannot be read is drawn anew
            if checksum_of(folder / name) == checksum:
                whole.add(name)
    return whole


def write(
    folder: Path, benchmark: str, runs: Path, names: Iterable[str], shown: str | None = None
) -> None:
    """List the files of a report, and remove what an earlier one of its folder left behind.

    Args:
        folder: Of the report.
        benchmark: Of which runs it is.
        runs: The folder that was given to `--out`.
        names: The files that the report consists of.
        shown: A checksum of what its pictures were drawn from.

    Raises:
        UserError: The manifest cannot be written.
    """
    earlier = _read(folder)
    files = {name: checksum_of(folder / name) for name in sorted(names) if (folder / name).exists()}
    if earlier is not None:
        _remove(folder, {k: v for k, v in earlier.files.items() if k not in files})
    manifest = Manifest(
        benchmark=benchmark, runs=_from(folder.parent, runs), files=files, shown=shown
    )
    write_atomically(folder / FILE, manifest.model_dump_json(indent=2) + "\n")


def remove_stale(to: Path, benchmarks: Collection[str], runs: Path, kept: Collection[str]) -> None:
    """Remove reports of these benchmarks' runs that have another name by now.

    Args:
        to: The folder that holds the reports.
        benchmarks: Whose reports have just been written.
        runs: The folder that was given to `--out`.
        kept: Names of folders that stay.
    """
    for path in sorted(to.glob(f"*/{FILE}")):
        folder, manifest = path.parent, _read(path.parent)
        if folder.name in kept or manifest is None:
            continue
        if manifest.benchmark in benchmarks and manifest.runs == _from(to, runs):
            _remove(folder, manifest.files)
            path.unlink()
            with contextlib.suppress(OSError):  # a user's file is in it
                folder.rmdir()


def _read(folder: Path) -> Manifest | None:
    try:
        return Manifest.model_validate_json(read_bytes(folder / FILE))
    except (OSError, ValidationError):
        return None


def _remove(folder: Path, files: dict[str, str]) -> None:
    """Remove files that are as they were written; a name with a folder in it is not a report's."""
    for name, checksum in files.items():
        path = folder / name
        if Path(name).name == name and not path.is_symlink() and path.is_file():
            with contextlib.suppress(OSError):
                if checksum_of(path) == checksum:
                    path.unlink()


def _from(folder: Path, path: Path) -> str:
    """A path as seen from a folder, so that both can be moved together."""
    return os.path.relpath(path.resolve(), folder.resolve())
