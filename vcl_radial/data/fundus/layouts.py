"""Folder layouts of the data sets of photographs, from `layouts.toml`, without a heavy import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vcl_radial.errors import DataError
from vcl_radial.files.reading import read_toml

if TYPE_CHECKING:
    from vcl_radial.data.fundus.table import Part

OTHER: Final = "-other"
"""Suffix of a data set's name for its photographs of level -1."""


@dataclass(frozen=True)
class Layout:
    """The folder layout of a data set, or of a part of its published split.

    Attributes:
        table: CSV file of the grades.
        image: its column of the images' names.
        grade: its column of the grades.
        images: folder of the pictures, which may also lie beside the table.
        folders: folders below the data folder that are searched for the table before it.
        name: name of the data set; None for that of the folder.
        site: site of photographs whose row names none; by default the data set's name.
        notice: licence, attribution and processing.
        paired: whether all images must be named <patient>_<left|right>.
        other_diseases: whether the grade may be -1: another disease, and no graded retinopathy.
        part: part of a published split.
        split: column of the part of a photograph, in place of `part`; it may be missing.
    """

    table: str = "labels.csv"
    image: str = "image"
    grade: str = "level"
    images: str = "images"
    folders: Sequence[str] = ()
    name: str | None = None
    site: str | None = None
    notice: str = ""
    paired: bool = False
    other_diseases: bool = False
    part: Part = ""
    split: str = "split"

    @property
    def prefix(self) -> str:
        """Prefix of the names of photographs, which repeat in the other parts of a split."""
        return f"{self.part}_" if self.part else ""


def _layouts(name: str, fields: Mapping[str, Any]) -> tuple[tuple[Layout, ...], ...]:
    common = {"name": None if name == "folder" else name, **fields}
    tables = common.pop("tables", [{}])
    layouts = [Layout(**{**common, **table}) for table in tables]
    whole = ((layout,) for layout in layouts if not layout.part)
    parts = tuple(layout for layout in layouts if layout.part)
    return (*whole, parts) if parts else (*whole,)


LAYOUTS: Final = {
    name: _layouts(name, fields)
    for name, fields in read_toml(Path(__file__).with_name("layouts.toml")).items()
}
"""Data sets by name, each with its possible layouts: one table, or one for each part."""

FUNDUS_DATASETS: Final = (
    "synthetic",
    *LAYOUTS,
    *(f"{name}{OTHER}" for name, layouts in LAYOUTS.items() if layouts[0][0].other_diseases),
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
    possible = LAYOUTS[name]
    for layouts in possible:
        for folder in (*(root / name for name in layouts[0].folders), root):
            if (folder / layouts[0].table).exists():
                return folder, layouts
    if not possible[0][0].folders:
        return root, possible[0]
    tables = " or ".join(dict.fromkeys(layouts[0].table for layouts in possible))
    names = " or ".join(dict.fromkeys(name for layouts in possible for name in layouts[0].folders))
    raise DataError(f"holds no {tables}, nor does {names} in it", at=root)
