"""Grades from a CSV file, and the photographs that they belong to."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcl_radial.data.fundus.faults import Fault
from vcl_radial.data.fundus.files import without_suffix
from vcl_radial.data.fundus.table import GRADES
from vcl_radial.errors import DataError

_PATIENT_AND_EYE = re.compile(r"(?P<patient>.+)_(?P<eye>left|right)")
_SHOWN = 8


@dataclass(frozen=True)
class Label:
    """A line of a table of grades: image, grade and whatever other columns there are."""

    name: str
    grade: int
    others: Mapping[str, str]


def read_labels(path: Path, image: str, grade: str) -> tuple[list[Label], list[Fault]]:
    """Read a CSV file with a header; names of columns are taken without case and outer spaces.

    Args:
        path: the file.
        image: the column of the images' names, with or without suffix.
        grade: the column of the grades.

    Returns:
        The labels that can be used, in the file's order, and what is wrong with the others: not
        graded, graded outside 0 to 4, listed more than once, or without a name.

    Raises:
        DataError: the file is missing, is no such table, or lacks a column.
    """
    labels: list[Label] = []
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    for number, row in _rows(path, (image, grade)):
        name, value = without_suffix(row[image]), row[grade]
        if not name:
            faults.append(Fault(f"line {number}", "without a name"))
            continue
        lines[name] = lines.get(name, 0) + 1
        if not value:
            faults.append(Fault(name, "not graded"))
        elif (as_grade := _grade(value)) is None:
            faults.append(Fault(name, "graded outside 0 to 4", repr(value)))
        else:
            labels.append(Label(name, as_grade, row))
    twice = [name for name, count in lines.items() if count > 1]
    faults = [fault for fault in faults if fault.image not in set(twice)]
    faults += [Fault(name, "listed more than once") for name in twice]
    return [label for label in labels if lines[label.name] == 1], faults


def matched(
    labels: Sequence[Label], faults: Sequence[Fault], files: Mapping[str, Sequence[Path]]
) -> tuple[list[tuple[Label, Path]], list[Fault], int]:
    """Labels with their files.

    Returns:
        The pairs; the faults, those given and of labels or files that are alone; and the number
        of photographs that are listed or there.
    """
    pairs, found = [], list(faults)
    for label in labels:
        paths = files.get(label.name, ())
        if len(paths) == 1:
            pairs.append((label, paths[0]))
        elif paths:
            found.append(Fault(label.name, "with two files", " and ".join(p.name for p in paths)))
        else:
            found.append(Fault(label.name, "missing"))
    listed = {label.name for label in labels} | {fault.image for fault in faults}
    found += [Fault(name, "without a label") for name in files if name not in listed]
    return pairs, found, len(listed | set(files))


def patient_and_eye(name: str) -> tuple[str, str] | None:
    """`10` and `left` of Kaggle's `10_left`; None where a name is not like that."""
    parts = _PATIENT_AND_EYE.fullmatch(name)
    return None if parts is None else (parts["patient"], parts["eye"])


def _rows(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Number and cells of every line that is not blank."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip().lower() for name in next(reader, [])]
            lacking = [name for name in needed if name not in header]
            if lacking:
                shown = ", ".join(filter(None, header[:_SHOWN])) or "nothing"
                raise DataError(
                    f"{path}: has no column {' or '.join(lacking)}, only {shown}: "
                    f"give it the columns {', '.join(needed)}"
                )
            # Where a name comes twice, as the empty ones of IDRiD do, the first one counts.
            places = {name: place for place, name in reversed(list(enumerate(header)))}
            rows = []
            for line in reader:
                cells = line + [""] * (len(header) - len(line))
                row = {name: cells[place].strip() for name, place in places.items()}
                if any(row.values()):
                    rows.append((reader.line_num, row))
            return rows
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; put the table of grades there") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: is no CSV file in UTF-8 ({error}); save it as one") from None


def _grade(value: str) -> int | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number in GRADES else None
