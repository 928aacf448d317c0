"""Folders of fundus photographs as they are published, each as one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from vcl_radial.data.fundus.faults import Fault, OnFault, Tell, settle, tell_user
from vcl_radial.data.fundus.files import FileReader, images_in
from vcl_radial.data.fundus.labels import Label, matched, patient_and_eye, read_labels
from vcl_radial.data.fundus.table import Eye, Part, Photograph, Photographs
from vcl_radial.errors import DataError

EYEPACS_NOTICE: Final = (
    "EyePACS photographs of Kaggle's Diabetic Retinopathy Detection (2015), research use only"
)
IDRID_NOTICE: Final = (
    "IDRiD (c) Prasanna Porwal, Samiksha Pachade and Manesh Kokare (IEEE DataPort, 2018), CC BY 4.0"
)
APTOS_NOTICE: Final = "APTOS 2019 Blindness Detection (Kaggle), under the rules of the competition"

_PARTS: Final = {"": "", "train": "train", "valid": "validation", "val": "validation"} | {
    name: name for name in ("validation", "test")
}


def read_kaggle(folder: Path, on_fault: OnFault = "stop", tell: Tell = tell_user) -> Photographs:
    """Kaggle/EyePACS 2015: `trainLabels.csv` and `<patient>_<left|right>.jpeg`, here or in train/.

    Raises:
        DataError: files are missing or are not what they should be.
    """
    labels, faults = read_labels(folder / "trainLabels.csv", "image", "level")
    faults += _unpaired(labels)
    unnamed = {fault.image for fault in faults}
    labels = [label for label in labels if label.name not in unnamed]
    pairs, faults, total = matched(labels, faults, images_in(folder / "train", folder))
    settle(str(folder), faults, total, on_fault, tell)
    return Photographs(
        name="kaggle-eyepacs",
        rows=tuple(_row(label, path, site="eyepacs", named=True) for label, path in pairs),
        reader=FileReader(folder),
        notice=EYEPACS_NOTICE,
        faults=tuple(faults),
    )


def read_aptos(folder: Path, on_fault: OnFault = "stop", tell: Tell = tell_user) -> Photographs:
    """APTOS 2019: `train.csv` and the pictures in `train_images/`. Who is on them is not known.

    Raises:
        DataError: files are missing or are not what they should be.
    """
    labels, faults = read_labels(folder / "train.csv", "id_code", "diagnosis")
    pairs, faults, total = matched(labels, faults, images_in(folder / "train_images", folder))
    settle(str(folder), faults, total, on_fault, tell)
    return Photographs(
        name="aptos",
        rows=tuple(_row(label, path, site="aptos") for label, path in pairs),
        reader=FileReader(folder),
        notice=APTOS_NOTICE,
        patients_known=False,
        faults=tuple(faults),
    )


def read_idrid(folder: Path, on_fault: OnFault = "stop", tell: Tell = tell_user) -> Photographs:
    """IDRiD's `B. Disease Grading` as published, with its split. Who is on them is not known.

    The numbers of both parts begin at 001: names get the prefix `train_` or `test_`.

    Raises:
        DataError: files are missing or are not what they should be.
    """
    rows: list[Photograph] = []
    faults: list[Fault] = []
    total = 0
    for part, letter, words in (("train", "a", "Training"), ("test", "b", "Testing")):
        table = folder / "2. Groundtruths" / f"{letter}. IDRiD_Disease Grading_{words} Labels.csv"
        labels, of_labels = read_labels(table, "image name", "retinopathy grade")
        files = images_in(folder / "1. Original Images" / f"{letter}. {words} Set")
        pairs, of_part, count = matched(labels, of_labels, files)
        rows += [
            _row(label, path, site="idrid", part=cast(Part, part), prefix=f"{part}_")
            for label, path in pairs
        ]
        faults += [Fault(f"{part}_{f.image}", f.kind, f.detail) for f in of_part]
        total += count
    settle(str(folder), faults, total, on_fault, tell)
    return Photographs(
        name="idrid",
        rows=tuple(rows),
        reader=FileReader(folder),
        notice=IDRID_NOTICE,
        patients_known=False,
        faults=tuple(faults),
    )


def read_folder(
    folder: Path,
    on_fault: OnFault = "stop",
    tell: Tell = tell_user,
    *,
    name: str | None = None,
    notice: str = "",
    paired: bool = False,
) -> Photographs:
    """A folder of one's own: `labels.csv` and the pictures, here or in `images/`.

    `labels.csv` has the columns `image` and `level`, and where they are known `patient`, `eye`
    (left or right), `site` and `split` (train, validation or test). Without a column `patient` it
    is taken from the names if all are like `<patient>_left`; else every photograph counts as a
    patient of its own.

    Args:
        folder: where they lie.
        on_fault: what becomes of photographs that cannot be used.
        tell: takes a line for the user.
        name: of the data set; the folder's by default.
        notice: licence, attribution and processing.
        paired: whether all have to be named <patient>_<left|right>.

    Raises:
        DataError: files are missing or are not what they should be.
    """
    table = folder / "labels.csv"
    labels, faults = read_labels(table, "image", "level")
    name = name or folder.resolve().name
    with_patients = bool(labels) and "patient" in labels[0].others
    named = not with_patients and all(patient_and_eye(label.name) for label in labels)
    if paired and not with_patients:
        faults += _unpaired(labels)
        named = True
    for label in labels:
        faults += _of_columns(label, with_patients)
    faulty = {fault.image for fault in faults}
    labels = [label for label in labels if label.name not in faulty]
    pairs, faults, total = matched(labels, faults, images_in(folder / "images", folder))
    settle(str(folder), faults, total, on_fault, tell)
    return Photographs(
        name=name,
        rows=tuple(_row(label, path, site=name, named=named) for label, path in pairs),
        reader=FileReader(folder),
        notice=notice,
        patients_known=with_patients or named,
        faults=tuple(faults),
    )


def _unpaired(labels: Sequence[Label]) -> list[Fault]:
    return [
        Fault(label.name, "not named <patient>_left or <patient>_right")
        for label in labels
        if patient_and_eye(label.name) is None
    ]


def _of_columns(label: Label, with_patients: bool) -> list[Fault]:
    """What is wrong with the columns that need not be there."""
    faults = []
    if with_patients and not label.others["patient"]:
        faults.append(Fault(label.name, "without a patient"))
    for column, known in (("eye", ("", "left", "right", "unknown")), ("split", tuple(_PARTS))):
        if (value := label.others.get(column, "").lower()) not in known:
            faults.append(Fault(label.name, f"of an unknown {column}", repr(value)))
    return faults


def _row(
    label: Label,
    path: Path,
    *,
    site: str,
    named: bool = False,
    part: Part = "",
    prefix: str = "",
) -> Photograph:
    """A row from a label; the label's own columns come first."""
    name, others = prefix + label.name, label.others
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


def first_folder(root: Path, marker: str, *folders: str) -> Path:
    """The first of these folders below the root, or the root itself, that holds the marker.

    Raises:
        DataError: none does.
    """
    places = [root, *(root / folder for folder in folders)]
    for place in places:
        if (place / marker).exists():
            return place
    raise DataError(f"{root}: holds no {marker}, nor does {' or '.join(folders)} in it")
