"""Published image data sets, from `published.toml`, without a heavy import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vcl_radial.files.reading import read_toml


@dataclass(frozen=True)
class PublishedImages:
    """A published image data set.

    Attributes:
        folder: folder of its four IDX files, and its class in torchvision if it is downloaded.
        downloaded: whether it may be downloaded; without a licence it may not.
        class_names: names of the classes.
        sha256: SHA-256 of the uncompressed files, in the order of `data_files.IDX_NAMES`.
    """

    folder: str
    downloaded: bool = True
    class_names: Sequence[str] = ()
    sha256: Sequence[str] = ()


PUBLISHED: Final = {
    name: PublishedImages(**fields)
    for name, fields in read_toml(Path(__file__).with_name("published.toml")).items()
}
"""Data sets by name."""
