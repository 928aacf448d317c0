"""Fundus photographs as one table, whatever folder they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from PIL import Image

    from vcl_radial.data.fundus.faults import Fault

GRADES: Final = (0, 1, 2, 3, 4)
"""No, mild, moderate, severe and proliferative retinopathy."""

NOT_GRADED: Final = -1
"""Grade of an eye with another disease and unknown retinopathy."""

REFERABLE_FROM: Final = 2
"""Grades 0 and 1 are healthy, 2 to 4 are to be seen by an expert (Leibig et al. 2017)."""

Eye = Literal["left", "right", "unknown"]
Part = Literal["train", "validation", "test", ""]


@dataclass(frozen=True)
class Photograph:
    """A row of the table.

    Attributes:
        name: name of the photograph, unique in a table.
        patient: the patient; if unknown, the photograph's own name.
        eye: left, right or unknown.
        grade: grade of retinopathy, 0 to 4, or -1 if only another disease is known.
        site: clinic or camera.
        part: part of the published split, or "".
        path: file of the photograph, if it has one.
        artefact: artefact of the camera, if known (only for synthetic pictures), or "".
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
        """The origin of the pictures, different for different origins."""
        ...

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture in RGB, at least `size` pixels wide and high where the source has as many.

        Raises:
            Unreadable: the picture is damaged or missing.
        """
        ...

    def version(self, photograph: Photograph) -> str:
        """A text that changes with the picture."""
        ...


@dataclass(frozen=True)
class Photographs:
    """A table of photographs and how to read them.

    Attributes:
        name: name of the data set.
        rows: one row for each photograph.
        reader: reads their pictures.
        notice: licence, attribution and processing, for pages that show them.
        patients_known: whether `patient` is known. If not, two photographs of one patient may be
            in different parts of a split.
        synthetic: whether the pictures were drawn; pages that show them must state it.
        faults: photographs that were left out, and why.
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
        referable = (self.grades >= REFERABLE_FROM).astype(np.int64)
        return np.where(self.grades == NOT_GRADED, NOT_GRADED, referable)

    @property
    def patients(self) -> NDArray[np.str_]:
        """The patient of each photograph, `[N]`: the unit of splits and of resampling."""
        return np.array([row.patient for row in self.rows], np.str_)

    def select(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Photographs:
        """The table of these rows, by number or by mask, in this order."""
        numbers = np.arange(len(self))[np.asarray(rows)]
        return replace(self, rows=tuple(self.rows[number] for number in numbers))

    def frame(self) -> pd.DataFrame:
        """The table as a data frame: image, patient, eye, grade, site, part, path, artefact."""
        import pandas as pd

        columns = [field.name for field in fields(Photograph)]
        frame = pd.DataFrame([vars(row) for row in self.rows], columns=columns)
        return frame.rename(columns={"name": "image"})
