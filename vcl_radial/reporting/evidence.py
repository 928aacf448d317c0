"""Store finished runs in a few small files that can be committed, enough to write their report.

The files lie beside the pages of a report: `evidence.json` with the spec and the environment of
every run, and the checksums of the other files; `evidence-TABLE.csv.xz` with the rows of a table of
all runs, after the number of the run; and further tables of the track. `vcl-radial report` reads a
folder with them like run folders, and writes the same pages.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import tomli_w

from vcl_radial.errors import DataError
from vcl_radial.files.reading import SMALL, checksum, open_text, read_json
from vcl_radial.runs.folder import ENVIRONMENT, SPEC, write_atomically
from vcl_radial.runs.track import FinishedRun

FILE = "evidence.json"
_LARGEST = 4 * SMALL
"""Largest size of a table in bytes, decompressed."""


def rounded(run: FinishedRun) -> FinishedRun:
    """Round scores to twelve digits to save bytes; fewer would break ties in tests over seeds."""
    tables = {
        name: table.assign(**table.select_dtypes("float").map(lambda value: float(f"{value:.12g}")))
        for name, table in run.tables.items()
    }
    return replace(run, tables=tables)


def write(runs: Sequence[FinishedRun], report: Path, more: Mapping[str, str]) -> list[str]:
    """Write the files, and return their names.

    Args:
        runs: runs of one benchmark.
        report: the folder of its report.
        more: further tables of the track: the text of CSV files by name.

    Raises:
        UserError: a file cannot be written.
    """
    entries = [
        {
            "folder": "/".join(run.path.parts[-3:]),
            "spec": run.spec.model_dump(exclude_unset=True, exclude_none=True),
            "environment": run.environment,
        }
        for run in runs
    ]
    names = dict.fromkeys(name for run in runs for name in run.tables)
    texts = {f"evidence-{name}.csv": _joined(runs, name) for name in names}
    files = {}
    for name, text in {**texts, **more}.items():
        # xz saves a quarter against gzip, as runs on the same patients repeat.
        content = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        write_atomically(report / f"{name}.xz", content)
        files[f"{name}.xz"] = checksum(report / f"{name}.xz")
    # Written last, so that the other files exist if this one does.
    listed = {"runs": entries, "files": files}
    write_atomically(report / FILE, json.dumps(listed, separators=(",", ":")) + "\n")
    return [FILE, *files]


def restore(report: Path, to: Path) -> list[tuple[Path, Path]]:
    """Write the spec, the environment and the tables of every run into a separate folder.

    Args:
        report: the folder with the files.
        to: the folder in which the folders are made.

    Returns:
        Each new folder, with the original path of the run, below `report`.

    Raises:
        DataError: a file is damaged.
    """
    try:
        listed = read_json(report / FILE)
        # Before version 0.2 the file was the list of runs.
        entries, files = (
            (listed, None) if isinstance(listed, list) else (listed["runs"], listed["files"])
        )
        _check_files(report, {} if files is None else files)
        # A table of an earlier report may lie beside them, whose rows are those of other runs.
        tables = [report / name for name in files] if files is not None else [*report.iterdir()]
        folders = [
            (to / str(number), _below(report, run["folder"])) for number, run in enumerate(entries)
        ]
        for (folder, _), run in zip(folders, entries, strict=True):
            folder.mkdir(parents=True)
            (folder / SPEC).write_text(tomli_w.dumps(run["spec"]), encoding="utf-8")
            (folder / ENVIRONMENT).write_text(json.dumps(run["environment"]), encoding="utf-8")
        for path in sorted(path for path in tables if path.match("evidence-*.csv.xz")):
            name = path.name.removeprefix("evidence-").removesuffix(".xz")
            with open_text(path, _LARGEST) as file:
                table = pd.read_csv(file, dtype=str, keep_default_na=False)
            for number, rows in table.groupby("run"):
                # A row whose number belongs to no run raises an error, since there is no folder for
                # it.
                rows.drop(columns="run").to_csv(to / str(int(str(number))) / name, index=False)
    except (
        OSError,
        lzma.LZMAError,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"cannot be read ({reason}); write it again", report / FILE) from None
    return folders


def _joined(runs: Sequence[FinishedRun], name: str) -> str:
    """The rows of a table of all runs as CSV, each after the number of its run."""
    tables = {number: run.tables[name] for number, run in enumerate(runs) if name in run.tables}
    joined = pd.concat(tables, names=["run"]).reset_index("run")
    return joined.to_csv(index=False)


def _check_files(report: Path, checksums: Mapping[str, str]) -> None:
    """Compare files with their checksums.

    Raises:
        ValueError: a file has another checksum.
    """
    for name, known in checksums.items():
        if checksum(_below(report, name)) != known:
            raise ValueError(f"{name} has another checksum")


def _below(report: Path, folder: str) -> Path:
    """The path of a folder below another one.

    Raises:
        ValueError: the path leads out of it.
    """
    if ".." in Path(folder).parts or Path(folder).is_absolute():  # also "//etc"
        raise ValueError(f"{folder} is elsewhere")
    return report / folder
