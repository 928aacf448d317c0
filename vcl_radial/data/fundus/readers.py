"""Folders of fundus photographs as they are published, each as one table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from vcl_radial.data.decoding import ReportProgress, print_progress
from vcl_radial.data.fundus.faults import Fault, OnFault, handle_faults
from vcl_radial.data.fundus.files import FileReader, images_in
from vcl_radial.data.fundus.labels import Label, read_labels
from vcl_radial.data.fundus.layouts import LAYOUTS, OTHER, Layout
from vcl_radial.data.fundus.table import NOT_GRADED, Eye, Part, Photograph, Photographs
from vcl_radial.errors import DataError, visible

_EYES: Final = ("", "left", "right", "unknown")
_PARTS: Final = {
    "valid": "validation",
    "val": "validation",
    "public": "validation",
    "private": "test",
} | {name: name for name in ("", "train", "validation", "test")}
_PATIENT_AND_EYE: Final = re.compile(r"(?P<patient>.+)_(?P<eye>left|right)")
"""Kaggle's names, such as `10_left`."""


def read_folder(
    folder: Path,
    on_fault: OnFault = "stop",
    report: ReportProgress = print_progress,
    layouts: Sequence[Layout] = LAYOUTS["folder"][0],
    other_diseases: bool = False,
) -> Photographs:
    """Read a folder of photographs: by default a user's own, with `labels.csv` and `images/`.

    The table has the columns of images and grades, and where they are known `patient`, `eye`
    (left or right), `site` and `split` (train, validation or test). Without a column `patient` it
    is taken from the names if all are like `<patient>_left`; else every photograph counts as a
    separate patient. A level of -1 means that the eye has another disease and no known grade; such
    photographs are left out, or read alone.

    Args:
        folder: folder of the photographs.
        on_fault: "stop" at photographs that cannot be used, or "skip" them.
        report: takes a line for the user: what is left out, and the number of rows of a table.
        layouts: names of files and columns; several where each part of a split has a table.
        other_diseases: whether the photographs of level -1 are read, and the graded ones left out.

    Raises:
        DataError: files are missing or malformed.
    """
    name = layouts[0].name or visible(folder.resolve().name)
    rows: list[Photograph] = []
    faults: list[Fault] = []
    summaries: list[str] = []
    patients_known = True
    for layout in layouts:
        table = folder / layout.table
        labels, part_faults, listed = read_labels(table, layout)
        summaries.append(f"{table}: {listed:,} rows")
        files = images_in(folder / layout.images, folder)
        known = {fault.image for fault in part_faults} | {label.name for label in labels}
        has_patients = bool(labels) and "patient" in labels[0].cells
        named = not has_patients and (
            layout.paired or all(_PATIENT_AND_EYE.fullmatch(label.name) for label in labels)
        )
        patients_known = patients_known and (has_patients or named)
        for label in labels:
            if (label.grade == NOT_GRADED) != other_diseases:
                continue
            row = _row(label, files.get(label.name, []), layout, layout.site or name, named)
            if isinstance(row, Fault):
                part_faults.append(row)
            else:
                rows.append(row)
        part_faults += [Fault(image, "without a label") for image in files if image not in known]
        faults += [replace(fault, image=f"{layout.prefix}{fault.image}") for fault in part_faults]
    if not rows and not faults:
        lacking = "photographs of level -1" if other_diseases else "graded photographs"
        raise DataError(f"{layouts[0].table} holds no {lacking}", at=folder)
    handle_faults(str(folder), faults, len(rows) + len(faults), on_fault, report)
    for summary in summaries:
        report(summary)
    return Photographs(
        name=f"{name}{OTHER}" if other_diseases else name,
        rows=tuple(rows),
        reader=FileReader(folder),
        notice=layouts[0].notice,
        patients_known=patients_known,
        faults=tuple(faults),
    )


def _row(
    label: Label, paths: Sequence[Path], layout: Layout, site: str, named: bool
) -> Photograph | Fault:
    """The row of a label, or the first fault of its cells and files; its own columns come first."""
    name, cells = f"{layout.prefix}{label.name}", label.cells
    eye, split = (cells.get(column, "").lower() for column in ("eye", layout.split))
    pair = _PATIENT_AND_EYE.fullmatch(label.name) if named else None
    for is_fault, kind, detail in (
        (cells.get("patient") == "", "without a patient", ""),
        (eye not in _EYES, "of an unknown eye", repr(eye)),
        (split not in _PARTS, "of an unknown split", repr(split)),
        (named and pair is None, "not named <patient>_left or <patient>_right", ""),
        (not paths, "missing", ""),
        (len(paths) > 1, "with two files", " and ".join(path.name for path in paths)),
    ):
        if is_fault:
            return Fault(label.name, kind, detail)
    return Photograph(
        name=name,
        patient=cells.get("patient") or (pair["patient"] if pair else name),
        eye=cast(Eye, eye or (pair["eye"] if pair else "unknown")),
        grade=label.grade,
        site=cells.get("site") or site,
        part=cast(Part, _PARTS[split] or layout.part),
        path=paths[0],
    )
