"""Store one result per file: many commands fill a folder, and its page shows all results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vcl_radial.files.reading import read_bytes
from vcl_radial.runs.folder import write_atomically

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def write(folder: Path, name: str, record: DataclassInstance) -> None:
    """Write a record as `<folder>/<name>.json`, and replace an earlier one.

    Args:
        folder: an existing folder.
        name: name of the result.
        record: a dataclass of JSON values, and of dataclasses and named tuples of these.

    Raises:
        UserError: the file cannot be written.
    """
    write_atomically(folder / f"{name}.json", json.dumps(asdict(record), indent=1) + "\n")


def read(folder: Path, names: Iterable[str], kind: type[T], remedy: str) -> dict[str, T]:
    """Read the records of a folder by name, in the order of the names.

    A damaged record is reported on stderr with the remedy, and left out.

    Args:
        folder: the folder of the records.
        names: names of all possible results.
        kind: the dataclass of the records.
        remedy: the command that makes a result again, without its name.
    """
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    records = {}
    for name in names:
        path = folder / f"{name}.json"
        try:
            records[name] = adapter.validate_json(read_bytes(path))
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            print(f"{path}: damaged, left out; make it again by {remedy} {name}", file=sys.stderr)
    return records
