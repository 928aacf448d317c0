"""Folder layouts of the data sets of photographs: only names, without a heavy import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vcl_radial.errors import DataError

if TYPE_CHECKING:
    from vcl_radial.data.fundus.table import Part

EYEPACS_NOTICE: Final = (
    "EyePACS photographs of Kaggle's Diabetic Retinopathy Detection (2015), research use only"
)
IDRID_NOTICE: Final = (
    "IDRiD (c) Prasanna Porwal, Samiksha Pachade and Manesh Kokare (IEEE DataPort, 2018), CC BY 4.0"
)
APTOS_NOTICE: Final = (
    "APTOS 2019 Blindness Detection (Kaggle), under the rules of the competition, research use only"
)
ODIR_NOTICE: Final = (
    "ODIR-5K (Peking University, ODIR-2019), research use only; levels from the keywords of an eye"
)

OTHER: Final = "-other"
"""Suffix of a data set's name for its photographs of level -1."""

_IDRID_PARTS: Final[tuple[tuple[Part, str, str], ...]] = (
    ("train", "a", "Training"),
    ("test", "b", "Testing"),
)


@dataclass(frozen=True)
class Layout:
    """The folder layout of a data set, or of a part of its published split.

    Attributes:
        table: CSV file of the grades.
        image: its column of the images' names.
        grade: its column of the grades.
        images: folder of the pictures, which may also lie beside the table.
        places: folders below the data folder that are searched for the table before it.
        name: name of the data set; by default that of the folder.
        site: site of photographs whose row names none; by default the data set's name.
        notice: licence, attribution and processing.
        paired: whether all images must be named <patient>_<left|right>.
        others: whether the grade may be -1: another disease, and no graded retinopathy.
        part: part of a published split; a prefix of the names, which repeat in other parts.
    """

    table: str = "labels.csv"
    image: str = "image"
    grade: str = "level"
    images: str = "images"
    places: tuple[str, ...] = ()
    name: str | None = None
    site: str | None = None
    notice: str = ""
    paired: bool = False
    others: bool = False
    part: Part = ""


LAYOUTS: Final[dict[str, tuple[tuple[Layout, ...], ...]]] = {
    "aptos": (
        (
            Layout(
                places=("retinopathy/APTOS", "APTOS"),
                name="aptos",
                notice=f"{APTOS_NOTICE}; patients are not published, and those named here are "
                "groups of nearly identical photographs",
            ),
        ),
        (
            Layout(
                table="train.csv",
                image="id_code",
                grade="diagnosis",
                images="train_images",
                places=("retinopathy/APTOS", "APTOS"),
                name="aptos",
                notice=APTOS_NOTICE,
            ),
        ),
    ),
    "odir": (
        (
            Layout(
                places=("retinopathy/ODIR", "ODIR"),
                name="odir",
                notice=ODIR_NOTICE,
                others=True,
            ),
        ),
    ),
    "idrid": (
        (Layout(places=("retinopathy/IDRiD", "IDRiD"), name="idrid", notice=IDRID_NOTICE),),
        tuple(
            Layout(
                table=f"2. Groundtruths/{letter}. IDRiD_Disease Grading_{words} Labels.csv",
                image="image name",
                grade="retinopathy grade",
                images=f"1. Original Images/{letter}. {words} Set",
                places=tuple(
                    f"{folder}B. Disease Grading" for folder in ("retinopathy/IDRiD/", "IDRiD/", "")
                ),
                name="idrid",
                notice=IDRID_NOTICE,
                part=part,
            )
            for part, letter, words in _IDRID_PARTS
        ),
    ),
    "eyepacs-subset": (
        (
            Layout(
                places=("retinopathy/EyePACS-subset", "EyePACS-subset"),
                name="eyepacs-subset",
                notice=f"subset of {EYEPACS_NOTICE}; cropped, padded to a square and equalised in "
                "contrast per channel by their source",
                paired=True,
            ),
        ),
    ),
    "kaggle-eyepacs": (
        (
            Layout(
                table="trainLabels.csv",
                images="train",
                places=("retinopathy/EyePACS", "EyePACS"),
                name="kaggle-eyepacs",
                site="eyepacs",
                notice=EYEPACS_NOTICE,
                paired=True,
            ),
        ),
    ),
    "folder": ((Layout(others=True),),),
}
"""Data sets by name, each with its possible layouts: one table, or one for each part."""

FUNDUS_DATASETS: Final = (
    "synthetic",
    *LAYOUTS,
    *(f"{name}{OTHER}" for name, ways in LAYOUTS.items() if ways[0][0].others),
)
"""Every data set by its name."""


def located(name: str, root: Path) -> tuple[Path, tuple[Layout, ...]]:
    """The folder of a data set, and its layout.

    Args:
        name: name in `LAYOUTS`.
        root: the data folder.

    Raises:
        DataError: the table is in none of the layout's folders.
    """
    ways = LAYOUTS[name]
    for way in ways:
        for place in (*(root / folder for folder in way[0].places), root):
            if (place / way[0].table).exists():
                return place, way
    if not ways[0][0].places:
        return root, ways[0]
    tables = " or ".join(dict.fromkeys(way[0].table for way in ways))
    places = " or ".join(dict.fromkeys(folder for way in ways for folder in way[0].places))
    raise DataError(f"holds no {tables}, nor does {places} in it", at=root)
