"""The list of files that a report has written, so that a later report can remove them.

A second stream under one `--out` gives a benchmark's report another name, and a removed method
leaves its pictures behind. Such files are removed if the manifest beside them lists them with their
present checksum; all other files in the folder stay, and so does the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vcl_radial.errors import UserError
from vcl_radial.files.reading import checksum as checksum_of
from vcl_radial.files.reading import read_bytes
from vcl_radial.runs.folder import write_atomically

FILE = "manifest.json"
OF_ALL = f"*/{FILE}"
"""The pattern of all manifests in the folder of the reports."""


class Manifest(BaseModel):
    """The content of `manifest.json`.

    Attributes:
        benchmark: the benchmark of the runs.
        runs: the folder of the runs, relative to the folder of the reports.
        files: SHA-256 checksums by file name.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    benchmark: str
    runs: str
    files: dict[str, str]


def write(folder: Path, benchmark: str, runs: Path, names: Iterable[str]) -> None:
    """List the files of a report, and remove leftovers of an earlier report in its folder.

    Args:
        folder: the folder of the report.
        benchmark: the benchmark of the runs.
        runs: the folder of all runs, as given to `--out`.
        names: the names of the files of the report.

    Raises:
        UserError: the manifest cannot be written.
    """
    earlier = _read(folder)
    files = {name: checksum_of(folder / name) for name in sorted(names) if (folder / name).exists()}
    if earlier is not None:
        _remove(folder, {k: v for k, v in earlier.files.items() if k not in files})
    manifest = Manifest(benchmark=benchmark, runs=_from(folder.parent, runs), files=files)
    write_atomically(folder / FILE, manifest.model_dump_json(indent=2) + "\n")


def claim(folder: Path, benchmark: str, runs: Path, names: Iterable[str]) -> None:
    """Mark a folder as that of a report before its files are written.

    Args:
        folder: the folder of the report.
        benchmark: the benchmark of the runs.
        runs: the folder of all runs, as given to `--out`.
        names: the names of the files of the report.

    Raises:
        UserError: the folder is that of another report, or holds a file of such a name that no
            report has written, or the manifest cannot be written.
    """
    manifest = _read(folder)
    if manifest is not None and manifest.benchmark == benchmark:
        return
    if manifest is not None:
        fault = f"holds the report of {manifest.benchmark}; choose another folder"
        raise UserError(fault, at=folder)
    for name in names:
        if (folder / name).exists():
            fault = "exists, and this command has not written it; choose another folder"
            raise UserError(fault, at=folder / name)
    write(folder, benchmark, runs, [])


def files_of(to: Path, benchmark: str) -> list[Path]:
    """The files of the reports of a benchmark in the folder of the reports."""
    files: list[Path] = []
    for path in sorted(to.glob(OF_ALL)):
        manifest = _read(path.parent)
        if manifest is not None and manifest.benchmark == benchmark:
            files += [path, *(path.parent / name for name in manifest.files)]
    return files


def remove_stale(to: Path, benchmarks: Collection[str], runs: Path, kept: Collection[str]) -> None:
    """Remove reports of runs whose report has another name now.

    Args:
        to: the folder of the reports.
        benchmarks: benchmarks whose reports have just been written.
        runs: the folder of all runs, as given to `--out`.
        kept: names of folders that stay.
    """
    for path in sorted(to.glob(f"*/{FILE}")):
        folder, manifest = path.parent, _read(path.parent)
        if folder.name in kept or manifest is None:
            continue
        if manifest.benchmark in benchmarks and manifest.runs == _from(to, runs):
            _remove(folder, manifest.files)
            path.unlink()
            with contextlib.suppress(OSError):  # the folder holds a user's file
                folder.rmdir()


def _read(folder: Path) -> Manifest | None:
    try:
        return Manifest.model_validate_json(read_bytes(folder / FILE))
    except (OSError, ValidationError):
        return None


def _remove(folder: Path, files: dict[str, str]) -> None:
    """Remove unchanged files; names with a folder do not come from a report and are skipped."""
    for name, checksum in files.items():
        path = folder / name
        if Path(name).name == name and not path.is_symlink() and path.is_file():
            with contextlib.suppress(OSError):
                if checksum_of(path) == checksum:
                    path.unlink()


def _from(folder: Path, path: Path) -> str:
    """A path relative to a folder, so that both can be moved together."""
    return os.path.relpath(path.resolve(), folder.resolve())
