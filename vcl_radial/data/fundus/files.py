"""Photographs that lie in files: finding and decoding them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vcl_radial.data.fundus.table import Photograph, Unreadable
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
        from PIL import Image

        path = _path(photograph)
        try:
            with Image.open(path) as image:
                if image.mode.startswith(("I", "F")):
                    raise Unreadable(f"{image.mode} pixels; save it with 8 bits per channel")
                # The field may fill but a part of the picture, so more than `size` is kept.
                image.draft("RGB", (3 * size, 3 * size))
                return image.convert("RGB")
        except FileNotFoundError:
            raise Unreadable("the file is missing") from None
        except (
            OSError,
            SyntaxError,
            ValueError,
            EOFError,
            IndexError,
            struct.error,
            Image.DecompressionBombError,
        ) as error:  # what Pillow's decoders raise where bytes are not what they should be
            raise Unreadable(_first_line(error, path)) from None

    def version(self, photograph: Photograph) -> str:
        """Size and time of the last change: contents are not read again for that."""
        try:
            found = _path(photograph).stat()
        except OSError as error:
            raise Unreadable(error.strerror or "cannot be read") from None
        return f"{found.st_size} {found.st_mtime_ns}"


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
    raise DataError(f"{_listed(folders)}: no such folder; put the photographs there")


def without_suffix(name: str) -> str:
    """An image's name as a table of labels may write it, without the file's suffix."""
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def _listed(folders: Iterable[Path]) -> str:
    return " or ".join(str(folder) for folder in folders)


def _path(photograph: Photograph) -> Path:
    assert photograph.path is not None, f"{photograph.name} has no file"
    return photograph.path


def _first_line(error: Exception, path: Path) -> str:
    lines = (str(error) or type(error).__name__).replace(f"{str(path)!r}", "it").splitlines()
    return lines[0]
