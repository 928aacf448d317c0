"""Omniglot (Lake, Salakhutdinov and Tenenbaum 2015): 50 alphabets, drawn by 20 people each."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import interpolate

from vcl_radial.data.data_files import OMNIGLOT_PARTS, omniglot_folder
from vcl_radial.data.decoding import decoded, print_progress, processors
from vcl_radial.data.pixel_cache import Decoded, Pixels, digest, file_version, open_pixels
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.image_folder import decode_image
from vcl_radial.errors import DataError
from vcl_radial.files.reading import data_errors, open_file, read_text

SIDE: Final = 28
DRAWERS: Final = 20
TEST_DRAWERS: Final = 4
"""Drawings of each character by the last of its drawers, which are the test part: a fifth."""

Drawings: TypeAlias = NDArray[np.uint8]
"""Drawings of characters by 20 people, `[characters, 20, 28, 28]`; ink is 255."""


def load_omniglot(name: str, data_dir: Path | None) -> ImageData:
    """32,460 drawings of 1,623 characters, 28x28 grey; the 50 alphabets are its groups of classes.

    The drawings by drawers 1 to 16 of a character are training images, those by 17 to 20 are test
    images. Pixels are averaged down from 105x105, and ink is bright. In `data_dir` or
    `$VCL_RADIAL_DATA` the folder `omniglot` or `omniglot-py` has the official folders
    `images_background` and `images_evaluation`, or else their arrays `omniglot_images_*.npz` with
    `alphabets.csv`.

    Raises:
        UserError: no folder was named, or the cache cannot be written.
        DataError: files are missing or damaged.
    """
    folder = omniglot_folder(data_dir)
    official = (folder / OMNIGLOT_PARTS[0]).is_dir()
    alphabets = [*(_from_folders(folder) if official else _from_arrays(folder))]
    drawings = torch.from_numpy(np.concatenate([drawn for _, drawn in alphabets]))
    train, test = drawings[:, :-TEST_DRAWERS], drawings[:, -TEST_DRAWERS:]
    names: list[str] = []
    groups: list[tuple[str, tuple[int, ...]]] = []
    for alphabet, drawn in alphabets:
        groups.append((alphabet, tuple(range(len(names), len(names) + len(drawn)))))
        names += [f"{alphabet} {number:02}" for number in range(1, len(drawn) + 1)]
    labels = [torch.arange(len(names)).repeat_interleave(part.shape[1]) for part in (train, test)]
    x = [part.flatten(0, 1).contiguous() for part in (train, test)]
    return ImageData(name, x[0], labels[0], x[1], labels[1], tuple(names), groups=tuple(groups))


def _from_arrays(folder: Path) -> Iterator[tuple[str, Drawings]]:
    """Names and drawings of the alphabets, from arrays `[characters, 20, 105, 105]` of paper."""
    parts, table = {}, folder / "alphabets.csv"
    for part in OMNIGLOT_PARTS:
        path = folder / f"omniglot_{part}.npz"
        with (
            data_errors(path),
            open_file(path) as content,
            np.load(content, allow_pickle=False) as file,
        ):
            parts[part] = np.asarray(file["images"])
    first, number = 0, 0
    with data_errors(table):
        for row in csv.DictReader(read_text(table).splitlines()):
            part, count = f"images_{row['part']}", int(row["characters"])
            if part == OMNIGLOT_PARTS[1] and not number:
                first, number = 0, 1
            paper = parts[part][first : first + count]
            if paper.shape[:2] != (count, DRAWERS):
                raise ValueError(f"{row['alphabet']} has {list(paper.shape)} drawings")
            first += count
            yield row["alphabet"], _reduced(paper)


def _reduced(paper: NDArray[np.bool_]) -> Drawings:
    """Bits of paper `[..., H, W]` as ink `[..., 28, 28]`, antialiased."""
    ink = torch.from_numpy(~paper).flatten(0, 1)[:, None].float().mul_(255)
    small = interpolate(ink, size=(SIDE, SIDE), mode="bilinear", antialias=True)
    return np.asarray(small.round().byte().view(*paper.shape[:2], SIDE, SIDE).numpy())


def _from_folders(folder: Path) -> Iterator[tuple[str, Drawings]]:
    """Names and drawings of the alphabets, from files `ALPHABET/characterNN/NNNN_DD.png`."""
    characters = [
        sorted(character.glob("*.png"))
        for part in OMNIGLOT_PARTS
        for character in sorted(folder.glob(f"{part}/*/character*"))
    ]
    for character in characters:
        if len(character) != DRAWERS:
            raise DataError(
                f"has {len(character)} drawings, not {DRAWERS}: copy it again",
                at=character[0].parent if character else folder,
            )
    if not characters:
        raise DataError("has no ALPHABET/characterNN/*.png: copy it again", at=folder)
    paths = [path for character in characters for path in character]
    pixels = open_pixels(
        f"{folder}: drawings",
        f"omniglot/{digest(str(folder.resolve()))[:16]}",
        [[str(path.relative_to(folder)), file_version(path)] for path in paths],
        [sys.modules[__name__]],
        partial(_decoded, paths),
        print_progress,
    ).pixels
    drawn = 255 - np.asarray(pixels)[:, 0].reshape(-1, DRAWERS, SIDE, SIDE)
    alphabets = [character[0].parent.parent.name for character in characters]
    for alphabet in dict.fromkeys(alphabets):
        yield alphabet, drawn[[name == alphabet for name in alphabets]]


def _decoded(paths: list[Path]) -> Decoded:
    decode = partial(decode_image, image_size=SIDE)
    images = decoded(decode, paths, processors(), "Omniglot: drawings", print_progress)
    in_colour = (_three(image) for image in images)
    return (len(paths), 3, SIDE, SIDE), in_colour


def _three(image: Pixels) -> Pixels:
    return np.broadcast_to(image, (3, SIDE, SIDE))
