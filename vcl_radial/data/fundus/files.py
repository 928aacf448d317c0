"""Photographs that lie in files: finding and decoding them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from vcl_radial.data.decoding import Unreadable, opened
from vcl_radial.data.fundus.table import Photograph
from vcl_radial.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES: Final = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp")


class FileReader:
    """Decodes the file of a row.

    Args:
        origin: the folder.
    """

    def __init__(self, origin: Path) -> None:
        self.origin = str(origin.resolve())

    def read(self, photograph: Photograph, size: int) -> Image.Image:
        """The picture in RGB; a JPEG much larger than `size` is decoded at a smaller scale."""
        assert photograph.path is not None, f"{photograph.name} has no file"
        with opened(photograph.path) as image:
            if image.mode.startswith(("I", "F")):
                raise Unreadable(f"{image.mode} pixels; save it with 8 bits per channel")
            # The field may fill but a part of the picture, so more than `size` is kept.
            image.draft("RGB", (3 * size, 3 * size))
            return image.convert("RGB")

    def version(self, photograph: Photograph) -> str:
        """Size and time of the last change: contents are not read again for that."""
        assert photograph.path is not None, f"{photograph.name} has no file"
        try:
            status = photograph.path.stat()
        except OSError as error:
            raise Unreadable(error.strerror or "cannot be read") from None
        return f"{status.st_size} {status.st_mtime_ns}"


def images_in(*folders: Path) -> dict[str, list[Path]]:
    """The picture files in the first of these folders that is there, by name without suffix.

    Raises:
        DataError: none of them is there, or it cannot be read.
    """
    for folder in folders:
        if folder.is_dir():
            try:
                files = sorted(folder.iterdir())
            except OSError as error:
                raise DataError(f"{folder}: cannot be read: {error.strerror}") from None
            found: dict[str, list[Path]] = {}
            for path in files:
                if path.suffix.lower() in SUFFIXES and not path.name.startswith("."):
                    found.setdefault(path.stem, []).append(path)
            return found
    raise DataError(f"{' or '.join(map(str, folders))}: no such folder; put the photographs there")


def without_suffix(name: str) -> str:
    """An image's name as a table of labels may write it, without the file's suffix."""
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name
