"""One result as a file: a folder is filled by many commands, and its page shows all of it."""

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
    """Write a record as `<folder>/<name>.json`, in place of the one before.

    Args:
        folder: that is there.
        name: of the result.
        record: a dataclass of what JSON knows, and of dataclasses and named tuples of it.

    Raises:
        UserError: it cannot be written.
    """
    write_atomically(folder / f"{name}.json", json.dumps(asdict(record), indent=1) + "\n")


def read(folder: Path, names: Iterable[str], kind: type[T], remedy: str) -> dict[str, T]:
    """The records of a folder by name, in the order of the names.

    A record that is damaged is reported on stderr with the remedy, and left out.

    Args:
        folder: of the records.
        names: of the results that there may be.
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
