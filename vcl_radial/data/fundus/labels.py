"""Grades from a CSV file, and the photographs that they belong to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcl_radial.data.cells import plain_number
from vcl_radial.data.frames import read_frame
from vcl_radial.data.fundus.faults import Fault
from vcl_radial.data.fundus.files import without_suffix
from vcl_radial.data.fundus.table import GRADES, NOT_GRADED
from vcl_radial.errors import DataError, visible

_PATIENT_AND_EYE = re.compile(r"(?P<patient>.+)_(?P<eye>left|right)")
_SHOWN = 8


@dataclass(frozen=True)
class Label:
    """A line of a table of grades: image, grade and whatever other columns there are."""

    name: str
    grade: int
    others: Mapping[str, str]


def read_labels(
    path: Path, image: str, grade: str, others: bool = False
) -> tuple[list[Label], list[Fault], int]:
    """Read a CSV file with a header; names of columns are taken without case and outer spaces.

    Args:
        path: the file.
        image: the column of the images' names, with or without suffix.
        grade: the column of the grades.
        others: whether a grade may be -1.

    Returns:
        The labels that can be used, in the file's order; what is wrong with the others: not graded,
        graded outside 0 to 4, listed more than once, or without a name; and the number of rows.

    Raises:
        DataError: the file is missing, is no such table, or lacks a column.
    """
    frame = read_frame(path)
    frame.columns = frame.columns.str.lower()
    if missing := [name for name in (image, grade) if name not in frame]:
        columns = ", ".join(map(visible, frame.columns[:_SHOWN]))
        raise DataError(
            f"has no column {' or '.join(missing)}, only {columns}: "
            f"give it the columns {image}, {grade}",
            at=path,
        )
    if twice := [name for name in (image, grade) if list(frame.columns).count(name) > 1]:
        raise DataError(f"has two columns {twice[0]!r}; rename or delete one", at=path)
    # Of two other columns with the same name, the first one counts.
    frame = frame.loc[:, ~frame.columns.duplicated()]
    names = frame[image].map(without_suffix)
    repeated = names.duplicated(keep=False) & (names != "")
    labels: list[Label] = []
    faults: list[Fault] = []
    rows = frame[~repeated].to_dict("records")
    for row, name, record in zip(names.index[~repeated], names[~repeated], rows, strict=True):
        cells = {str(column): str(cell) for column, cell in record.items()}
        if not name:
            faults.append(Fault(f"row {row}", "without a name"))
        elif not cells[grade]:
            faults.append(Fault(name, "not graded"))
        elif (number := _grade(cells[grade], others)) is None:
            where = f"row {row}, column {grade!r} is {cells[grade]!r}"
            faults.append(Fault(name, "graded outside 0 to 4", where))
        else:
            labels.append(Label(name, number, cells))
    faults += [Fault(name, "listed more than once") for name in names[repeated].unique()]
    return labels, faults, len(frame)


def matched(
    labels: Sequence[Label], faults: Sequence[Fault], files: Mapping[str, Sequence[Path]]
) -> tuple[list[tuple[Label, Path]], list[Fault], int]:
    """Labels without a fault, with their files.

    Returns:
        The pairs; the faults, those given and of labels or files that are alone; and the number
        of photographs that are listed or there.
    """
    pairs, all_faults = [], list(faults)
    faulty = {fault.image for fault in faults}
    names = faulty | {label.name for label in labels}
    for label in labels:
        paths = files.get(label.name, ())
        if label.name in faulty:
            continue
        if len(paths) == 1:
            pairs.append((label, paths[0]))
        elif paths:
            files_named = " and ".join(p.name for p in paths)
            all_faults.append(Fault(label.name, "with two files", files_named))
        else:
            all_faults.append(Fault(label.name, "missing"))
    all_faults += [Fault(name, "without a label") for name in files if name not in names]
    return pairs, all_faults, len(names | set(files))


def patient_and_eye(name: str) -> tuple[str, str] | None:
    """`10` and `left` of Kaggle's `10_left`; None where a name is not like that."""
    parts = _PATIENT_AND_EYE.fullmatch(name)
    return None if parts is None else (parts["patient"], parts["eye"])


def _grade(value: str, others: bool) -> int | None:
    number = plain_number(value)
    if number in GRADES or (others and number == NOT_GRADED):
        return int(number)
    return None
