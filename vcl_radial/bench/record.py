"""What a section found, as a file of its own: one command after another fills a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vcl_radial.bench.sections import SECTIONS
from vcl_radial.bench.setting import Row
from vcl_radial.runs.folder import write_atomically


@dataclass(frozen=True)
class Record:
    """A section's numbers and where they come from.

    Attributes:
        rows: the numbers.
        notes: what has to be said beside them.
        command: what was typed.
        data: the images, in words.
        environment: as `vcl_radial.runs.environment.describe` gives it.
    """

    rows: list[Row]
    notes: list[str]
    command: str
    data: str
    environment: Mapping[str, Any]


def write(to: Path, section: str, record: Record) -> None:
    """Keep what was found, in place of what was there.

    Raises:
        UserError: it cannot be written.
    """
    write_atomically(to / f"{section}.json", json.dumps(asdict(record), indent=1) + "\n")


def read(to: Path) -> dict[str, Record]:
    """All that a folder holds, in the order of `SECTIONS`; a damaged file is named and left out."""
    found = {}
    for section in SECTIONS:
        path = to / f"{section}.json"
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            rows = [Row(*row) for row in table.pop("rows")]
            found[section] = Record(rows=rows, **table)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            print(f"{path}: damaged, left out; measure {section!r} again", file=sys.stderr)
    return found
