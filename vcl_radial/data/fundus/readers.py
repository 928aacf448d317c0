"""Folders of fundus photographs as they are published, each as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from vcl_radial.data.fundus.faults import (
    Fault,
    OnFault,
    ReportProgress,
    handle_faults,
    print_progress,
)
from vcl_radial.data.fundus.files import FileReader, images_in
from vcl_radial.data.fundus.labels import Label, matched, patient_and_eye, read_labels
from vcl_radial.data.fundus.layouts import LAYOUTS, OTHER, Layout
from vcl_radial.data.fundus.table import NOT_GRADED, Eye, Part, Photograph, Photographs
from vcl_radial.errors import DataError, visible

_PARTS: Final = {"": "", "train": "train", "valid": "validation", "val": "validation"} | {
    name: name for name in ("validation", "test")
}


def read_folder(
    folder: Path,
    on_fault: OnFault = "stop",
    report: ReportProgress = print_progress,
    layouts: Sequence[Layout] = LAYOUTS["folder"][0],
    others: bool = False,
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
        others: whether the photographs of level -1 are read, and the graded ones left out.

    Raises:
        DataError: files are missing or malformed.
    """
    rows: list[Photograph] = []
    faults: list[Fault] = []
    summaries: list[str] = []
    total, patients_known = 0, True
    name = layouts[0].name or visible(folder.resolve().name)
    for layout in layouts:
        table = folder / layout.table
        labels, of_part, listed = read_labels(table, layout.image, layout.grade, layout.others)
        summaries.append(f"{table}: {listed:,} rows")
        with_patients = bool(labels) and "patient" in labels[0].others
        named = not with_patients and all(patient_and_eye(label.name) for label in labels)
        if layout.paired and not with_patients:
            named = True
            of_part += [
                Fault(label.name, "not named <patient>_left or <patient>_right")
                for label in labels
                if patient_and_eye(label.name) is None
            ]
        files = images_in(folder / layout.images, folder)
        for label in labels:
            if (label.grade == NOT_GRADED) != others:
                files.pop(label.name, None)
        labels = [label for label in labels if (label.grade == NOT_GRADED) == others]
        for label in labels:
            of_part += _column_faults(label, with_patients)
        pairs, of_part, count = matched(labels, of_part, files)
        rows += [
            _row(label, path, layout.site or name, named, layout.part) for label, path in pairs
        ]
        prefix = f"{layout.part}_" if layout.part else ""
        faults += [replace(fault, image=f"{prefix}{fault.image}") for fault in of_part]
        total, patients_known = total + count, patients_known and (with_patients or named)
    if not rows and not faults:
        lacking = "photographs of level -1" if others else "graded photographs"
        raise DataError(f"{layouts[0].table} holds no {lacking}", at=folder)
    handle_faults(str(folder), faults, total, on_fault, report)
    for summary in summaries:
        report(summary)
    return Photographs(
        name=f"{name}{OTHER}" if others else name,
        rows=tuple(rows),
        reader=FileReader(folder),
        notice=layouts[0].notice,
        patients_known=patients_known,
        faults=tuple(faults),
    )


def _column_faults(label: Label, with_patients: bool) -> list[Fault]:
    """The faults in the optional columns."""
    faults = []
    if with_patients and not label.others["patient"]:
        faults.append(Fault(label.name, "without a patient"))
    for column, known in (("eye", ("", "left", "right", "unknown")), ("split", tuple(_PARTS))):
        if (value := label.others.get(column, "").lower()) not in known:
            faults.append(Fault(label.name, f"of an unknown {column}", repr(value)))
    return faults


def _row(label: Label, path: Path, site: str, named: bool, part: Part) -> Photograph:
    """A row from a label; the label's own columns come first."""
    name, others = f"{part}_{label.name}" if part else label.name, label.others
    patient, eye = name, "unknown"
    if named and (parts := patient_and_eye(label.name)) is not None:
        patient, eye = parts
    return Photograph(
        name=name,
        patient=others.get("patient") or patient,
        eye=cast(Eye, others.get("eye", "").lower() or eye),
        grade=label.grade,
        site=others.get("site") or site,
        part=cast(Part, _PARTS[others.get("split", "").lower()] or part),
        path=path,
    )
