"""Grades from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vcl_radial.data.cells import plain_number
from vcl_radial.data.frames import read_frame
from vcl_radial.data.fundus.faults import Fault
from vcl_radial.data.fundus.files import without_suffix
from vcl_radial.data.fundus.layouts import Layout
from vcl_radial.data.fundus.table import GRADES, NOT_GRADED
from vcl_radial.data.named_files import check_columns


@dataclass(frozen=True)
class Label:
    """A row of a table of grades: image, grade and all cells by column."""

    name: str
    grade: int
    cells: Mapping[str, str]


def read_labels(path: Path, layout: Layout) -> tuple[list[Label], list[Fault], int]:
    """Read a CSV file with a header; case and outer spaces in names of columns do not matter.

    Args:
        path: the file.
        layout: names of the columns, and whether a grade may be -1.

    Returns:
        The labels that can be used, in the file's order; the faults of the other rows: listed more
        than once, without a name, not graded, or graded outside 0 to 4; and the number of rows.

    Raises:
        DataError: the file is missing, is no such table, or lacks a column.
    """
    frame = read_frame(path)
    frame.columns = frame.columns.str.lower()
    check_columns(path, list(frame.columns), (layout.image, layout.grade))
    # If two other columns have the same name, the first one counts.
    frame = frame.loc[:, ~frame.columns.duplicated()]
    names = frame[layout.image].map(without_suffix)
    repeated = names.duplicated(keep=False) & (names != "")
    grades = (*GRADES, NOT_GRADED) if layout.other_diseases else GRADES
    labels: list[Label] = []
    faults = [Fault(name, "listed more than once") for name in names[repeated].unique()]
    rows = frame[~repeated]
    for row, name, cells in zip(rows.index, names[~repeated], rows.to_dict("records"), strict=True):
        text = str(cells[layout.grade])
        if not name:
            faults.append(Fault(f"row {row}", "without a name"))
        elif not text:
            faults.append(Fault(name, "not graded"))
        elif (grade := plain_number(text)) is None or grade not in grades:
            where = f"row {row}, column {layout.grade!r} is {text!r}"
            faults.append(Fault(name, "graded outside 0 to 4", where))
        else:
            labels.append(Label(name, int(grade), {str(c): str(v) for c, v in cells.items()}))
    return labels, faults, len(frame)
