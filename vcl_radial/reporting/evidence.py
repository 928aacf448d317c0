"""Finished runs in a few small files that can be committed: their report is made from these alone.

Beside a report's pages lie then `evidence.json`, the spec and the environment of every run; a file
`evidence-TABLE.csv.xz` of what all runs hold of a table, with the number of the run in front; and
what the track has besides. `vcl-radial report` reads a folder with them as it reads run folders,
and makes the same pages.
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
from vcl_radial.runs.finished import FinishedRun
from vcl_radial.runs.folder import ENVIRONMENT, SPEC, write_atomically

if TYPE_CHECKING:
    import pandas as pd

FILE = "evidence.json"
_LARGEST = 4 * SMALL
"""Bytes of a table, decompressed."""


def rounded(run: FinishedRun) -> FinishedRun:
    """With scores in twelve digits, for fewer bytes; with fewer, ties in tests over seeds break."""
    return replace(run, tables={name: _in_digits(table) for name, table in run.tables.items()})


def _in_digits(table: pd.DataFrame) -> pd.DataFrame:
    numbers = table.select_dtypes("float")
    return table.assign(**numbers.map(lambda value: float(f"{value:.12g}")))


def write(runs: Sequence[FinishedRun], place: Path, more: Mapping[str, str]) -> list[str]:
    """Write the files, and return their names.

    Args:
        runs: of one benchmark.
        place: the folder of its report.
        more: the track's own tables, as the text of a CSV file, by name.

    Raises:
        UserError: one cannot be written.
    """
    listed = [
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
    files = {f"{name}.xz": _small(text) for name, text in {**texts, **more}.items()}
    for name, content in files.items():
        write_atomically(place / name, content)
    # Last: with it the others are there.
    write_atomically(place / FILE, json.dumps(listed, indent=1) + "\n")
    return [FILE, *files]


def restore(place: Path, to: Path) -> list[tuple[Path, Path]]:
    """Write the spec, the environment and the tables of every run into a folder of its own.

    Args:
        place: the folder with the files.
        to: where the folders are made.

    Returns:
        Each folder that was made, and the path that it stands for, below `place`.

    Raises:
        DataError: a file is damaged.
    """
    try:
        listed = read_json(place / FILE)
        folders = [
            (to / str(number), _below(place, run["folder"])) for number, run in enumerate(listed)
        ]
        for (folder, _), run in zip(folders, listed, strict=True):
            folder.mkdir(parents=True)
            (folder / SPEC).write_text(tomli_w.dumps(run["spec"]), encoding="utf-8")
            (folder / ENVIRONMENT).write_text(json.dumps(run["environment"]), encoding="utf-8")
        for path in sorted(place.glob("evidence-*.csv.xz")):
            name = path.name.removeprefix("evidence-").removesuffix(".xz")
            with open_text(path, _LARGEST) as file:
                head, *lines = file.read().splitlines()
            of_runs = [[head.partition(",")[2]] for _ in listed]
            for line in lines:
                number, _, rest = line.partition(",")
                of_runs[_count(number)].append(rest)
            for (folder, _), content in zip(folders, of_runs, strict=True):
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
        words = " ".join(str(error).split())
        raise DataError(f"{place / FILE}: cannot be read ({words}); write it again") from None
    return folders


def _below(place: Path, folder: str) -> Path:
    """The path of a folder below another one.

    Raises:
        ValueError: it is elsewhere.
    """
    if {"..", "/"} & {*Path(folder).parts}:
        raise ValueError("the folder of a run is elsewhere")
    return place / folder


def _small(text: str) -> bytes:
    """A quarter smaller than by gzip: runs on the same patients repeat over megabytes."""
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def _count(text: str) -> int:
    """The number of a run; -1 would be the last one."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no number of a run")
    return int(text)
