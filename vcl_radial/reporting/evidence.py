"""Store finished runs in a few small files that can be committed, enough to write their report.

The files lie beside the pages of a report: `evidence.json` with the spec and the environment of
every run; `evidence-TABLE.csv.xz` with the rows of a table of all runs, after the number of the
run; and further tables of the track. `vcl-radial report` reads a folder with them like run folders,
and writes the same pages.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from vcl_radial.errors import DataError
from vcl_radial.files.reading import SMALL, open_text, read_json
from vcl_radial.runs.folder import ENVIRONMENT, SPEC, write_atomically
from vcl_radial.runs.track import FinishedRun

if TYPE_CHECKING:
    import pandas as pd

FILE = "evidence.json"
_LARGEST = 4 * SMALL
"""Largest size of a table in bytes, decompressed."""


def rounded(run: FinishedRun) -> FinishedRun:
    """Round scores to twelve digits to save bytes; fewer would break ties in tests over seeds."""
    return replace(run, tables={name: _rounded(table) for name, table in run.tables.items()})


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    numbers = table.select_dtypes("float")
    return table.assign(**numbers.map(lambda value: float(f"{value:.12g}")))


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
    tables: dict[str, list[str]] = defaultdict(list)
    for number, run in enumerate(runs):
        for name, table in run.tables.items():
            head, *lines = table.to_csv(index=False).splitlines()
            numbered = [f"{number},{line}" for line in lines]
            tables[name] += numbered if tables[name] else [f"run,{head}", *numbered]
    texts = {f"evidence-{name}.csv": "\n".join(lines) + "\n" for name, lines in tables.items()}
    files = {f"{name}.xz": _compressed(text) for name, text in {**texts, **more}.items()}
    for name, content in files.items():
        write_atomically(report / name, content)
    # Written last, so that the other files exist if this one does.
    write_atomically(report / FILE, json.dumps(entries, indent=1) + "\n")
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
        entries = read_json(report / FILE)
        folders = [
            (to / str(number), _below(report, run["folder"])) for number, run in enumerate(entries)
        ]
        for (folder, _), run in zip(folders, entries, strict=True):
            folder.mkdir(parents=True)
            (folder / SPEC).write_text(tomli_w.dumps(run["spec"]), encoding="utf-8")
            (folder / ENVIRONMENT).write_text(json.dumps(run["environment"]), encoding="utf-8")
        for path in sorted(report.glob("evidence-*.csv.xz")):
            name = path.name.removeprefix("evidence-").removesuffix(".xz")
            with open_text(path, _LARGEST) as file:
                head, *lines = file.read().splitlines()
            contents = [[head.partition(",")[2]] for _ in entries]
            for line in lines:
                number, _, rest = line.partition(",")
                contents[_number(number)].append(rest)
            for (folder, _), content in zip(folders, contents, strict=True):
                if len(content) > 1:
                    (folder / name).write_text("\n".join(content) + "\n", encoding="utf-8")
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
        raise DataError(f"{report / FILE}: cannot be read ({reason}); write it again") from None
    return folders


def _below(report: Path, folder: str) -> Path:
    """The path of a folder below another one.

    Raises:
        ValueError: the path leads out of it.
    """
    if {"..", "/"} & {*Path(folder).parts}:
        raise ValueError("the folder of a run is elsewhere")
    return report / folder


def _compressed(text: str) -> bytes:
    """Compress a text; xz saves a quarter against gzip, as runs on the same patients repeat."""
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _number(text: str) -> int:
    """Parse the number of a run; a negative number would select another run."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no number of a run")
    return int(text)
