"""Photographs that lie in files: finding and decoding them."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from vcl_radial.data.class_folders import entries, is_image
from vcl_radial.data.decoding import read_picture
from vcl_radial.data.fundus.table import Photograph
from vcl_radial.data.pixel_cache import file_version
from vcl_radial.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

_EDGE: Final = 512
"""Pixels along the shorter edge that a large photograph keeps at least."""


class FileReader:
    """Decodes the file of a row.

    Args:
        origin: the folder.
    """

    def __init__(self, origin: Path) -> None:
        self.origin = str(origin.resolve())

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture in RGB, at a smaller scale if it has many more pixels than `size`."""
        assert photograph.path is not None, f"{photograph.name} has no file"
        return read_photograph(photograph.path, size)

    def version(self, photograph: Photograph) -> str:
        """Size and time of the last change, so that the contents are not read again."""
        assert photograph.path is not None, f"{photograph.name} has no file"
        return file_version(photograph.path)


def read_photograph(path: Path, size: int) -> Image.Image:
    """The picture of a file in RGB, at a smaller scale if it has many more pixels than `size`.

    Raises:
        Unreadable: see `read_picture`.
    """
    # The field may fill only a part of the picture, and lesions are small.
    edge = max(3 * size, _EDGE)
    picture = read_picture(path, edge).convert("RGB")
    return picture.reduce(max(1, min(picture.size) // edge))


def images_in(*folders: Path) -> dict[str, list[Path]]:
    """The picture files in the first of these folders that exists, by name without suffix.

    Raises:
        DataError: none of the folders exists, or it cannot be read.
    """
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        places = " or ".join(map(str, folders))
        raise DataError("no such folder; put the photographs there", at=places)
    files: dict[str, list[Path]] = {}
    for path in entries(folder):
        if is_image(path):
            files.setdefault(path.stem, []).append(path)
    return files


def without_suffix(name: str) -> str:
    """An image's name as a table of labels may write it, without the file's suffix."""
    path = PurePath(name)
    return name.removesuffix(path.suffix) if is_image(path) else name
