"""How the data sets of photographs lie in their folders: names alone, without a heavy import."""

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
APTOS_NOTICE: Final = "APTOS 2019 Blindness Detection (Kaggle), under the rules of the competition"

_IDRID_PARTS: Final[tuple[tuple[Part, str, str], ...]] = (
    ("train", "a", "Training"),
    ("test", "b", "Testing"),
)


@dataclass(frozen=True)
class Layout:
    """How a data set lies in a folder.

    Attributes:
        table: the CSV file of the grades.
        image: its column of the images' names.
        grade: its column of the grades.
        images: the folder of the pictures, which may lie beside the table too.
        places: folders below the data folder in which the table is sought as well.
        name: of the data set; that of the folder by default.
        site: of photographs whose row names none; the data set's name by default.
        notice: licence, attribution and processing.
        paired: whether all images have to be named <patient>_<left|right>.
        part: of a published split, which is put before the names: those of its parts are alike.
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
    part: Part = ""

    def folder(self, root: Path) -> Path:
        """The data folder or the first of `places` below it that holds the table.

        Raises:
            DataError: none does.
        """
        for place in (root, *(root / folder for folder in self.places)):
            if (place / self.table).exists() or not self.places:
                return place
        raise DataError(f"{root}: holds no {self.table}, nor does {' or '.join(self.places)} in it")


LAYOUTS: Final = {
    "eyepacs-subset": Layout(
        places=("retinopathy/EyePACS-subset", "EyePACS-subset"),
        name="eyepacs-subset",
        notice=f"subset of {EYEPACS_NOTICE}; cropped, padded to a square and equalised in contrast "
        "per channel by their source",
        paired=True,
    ),
    "idrid": Layout(
        places=("retinopathy/IDRiD", "IDRiD", "B. Disease Grading"),
        name="idrid",
        notice=IDRID_NOTICE,
    ),
    "kaggle-eyepacs": Layout(
        table="trainLabels.csv",
        images="train",
        places=("retinopathy/EyePACS", "EyePACS"),
        name="kaggle-eyepacs",
        site="eyepacs",
        notice=EYEPACS_NOTICE,
        paired=True,
    ),
    "aptos": Layout(
        table="train.csv",
        image="id_code",
        grade="diagnosis",
        images="train_images",
        places=("retinopathy/APTOS", "APTOS"),
        name="aptos",
        notice=APTOS_NOTICE,
    ),
    "folder": Layout(),
}
"""Data sets whose folder holds one table and one folder of pictures."""

IDRID_AS_PUBLISHED: Final = tuple(
    Layout(
        table=f"2. Groundtruths/{letter}. IDRiD_Disease Grading_{words} Labels.csv",
        image="image name",
        grade="retinopathy grade",
        images=f"1. Original Images/{letter}. {words} Set",
        name="idrid",
        notice=IDRID_NOTICE,
        part=part,
    )
    for part, letter, words in _IDRID_PARTS
)
"""IDRiD's `B. Disease Grading` with its split. Who is on the photographs is not known."""

FUNDUS_DATASETS: Final = ("synthetic", *LAYOUTS)
"""Every data set by its name."""
