"""Fundus photographs as one table, whatever folder they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.decoding import Unreadable

if TYPE_CHECKING:
    import pandas as pd
    from PIL import Image

    from vcl_radial.data.fundus.faults import Fault

__all__ = [
    "GRADES",
    "NOT_GRADED",
    "REFERABLE_FROM",
    "Photograph",
    "Photographs",
    "Reader",
    "Unreadable",
]

GRADES: Final = (0, 1, 2, 3, 4)
"""No, mild, moderate, severe and proliferative retinopathy."""

NOT_GRADED: Final = -1
"""In place of a grade: another disease is there, and it is not known whether retinopathy is."""

REFERABLE_FROM: Final = 2
"""Grades 0 and 1 are healthy, 2 to 4 are to be seen by an expert (Leibig et al. 2017)."""

Eye = Literal["left", "right", "unknown"]
Part = Literal["train", "validation", "test", ""]


@dataclass(frozen=True)
class Photograph:
    """One row.

    Attributes:
        name: of the photograph, once in a table.
        patient: who is on it. Where nobody knows, the photograph's own name.
        eye: which one.
        grade: of retinopathy, 0 to 4, or -1 where only another disease is known.
        site: where or with what camera it was taken.
        part: of the split that it was published with, or "".
        path: its file, if it has one.
        artefact: of the camera, where that is known (synthetic pictures only), or "".
    """

    name: str
    patient: str
    eye: Eye
    grade: int
    site: str
    part: Part = ""
    path: Path | None = None
    artefact: str = ""


class Reader(Protocol):
    """Gives the pictures of a table's rows."""

    @property
    def origin(self) -> str:
        """Where they come from, in words that tell one origin from another."""
        ...

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture in RGB, at least `size` pixels wide and high where the source has as many.

        Raises:
            Unreadable: it is damaged or missing.
        """
        ...

    def version(self, photograph: Photograph) -> str:
        """What is another when the picture has become another.

        Raises:
            Unreadable: it is missing.
        """
        ...


@dataclass(frozen=True)
class Photographs:
    """A table of photographs and how to read them.

    Attributes:
        name: of the data set.
        rows: one for each photograph.
        reader: gives their pictures.
        notice: licence, attribution and processing, for whoever shows or reports them.
        patients_known: whether `patient` is known. If not, two photographs of one patient may come
            into different parts of a split.
        synthetic: whether the pictures were drawn; to be said wherever they are shown.
        faults: what was left out, and why.
    """

    name: str
    rows: tuple[Photograph, ...]
    reader: Reader
    notice: str = ""
    patients_known: bool = True
    synthetic: bool = False
    faults: tuple[Fault, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def grades(self) -> NDArray[np.int64]:
        """The grades, `[N]`."""
        return np.array([row.grade for row in self.rows], np.int64)

    @property
    def referable(self) -> NDArray[np.int64]:
        """The classes `[N]`: 1 from grade 2 on, 0 below it, and -1 where the grade is -1."""
        known = (self.grades >= REFERABLE_FROM).astype(np.int64)
        return np.where(self.grades == NOT_GRADED, NOT_GRADED, known)

    @property
    def patients(self) -> NDArray[np.str_]:
        """Who is on each photograph, `[N]`: the unit of splits and of resampling."""
        return np.array([row.patient for row in self.rows], np.str_)

    def select(self, places: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Photographs:
        """These rows, by place or by mask, in this order."""
        chosen = np.arange(len(self))[np.asarray(places)]
        return replace(self, rows=tuple(self.rows[place] for place in chosen))

    def frame(self) -> pd.DataFrame:
        """The table as a data frame: image, patient, eye, grade, site, part, path, artefact."""
        import pandas as pd

        columns = ["name", "patient", "eye", "grade", "site", "part", "path", "artefact"]
        rows = [[getattr(row, column) for column in columns] for row in self.rows]
        return pd.DataFrame(rows, columns=["image", *columns[1:]])
