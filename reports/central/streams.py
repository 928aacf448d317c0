"""The two confirmatory data sets, read from the files beside the published ones.

Benchmarks name the functions: `streams/omniglot.toml` and `streams/cifar10.toml`. Both read the
folder that `--data-dir` or `$VCL_RADIAL_DATA` names.
"""

from __future__ import annotations

import csv
import random
import tarfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import avg_pool2d

from vcl_radial.data.streams import ImageData
from vcl_radial.data.streams.image_folder import load_image_folder
from vcl_radial.errors import DataError
from vcl_radial.files.cache import cache_root, one_at_a_time

ALPHABETS, CHARACTERS, DRAWINGS, TESTED = 10, 20, 20, 6
"""So many alphabets, characters of each, drawings of each character, and of these test images."""

SIDE = 28


def omniglot(folder: Path | None) -> ImageData:
    """Omniglot: the first 20 characters of the first ten alphabets that have so many, 28x28 grey.

    Alphabets and characters are in the official order, the background set before the evaluation
    set, so that 20 classes in a row are an alphabet. Of the 20 drawings of a character 6 are test
    images, chosen by `random.Random` from the character's official number. The 105x105 bits are
    averaged over equal areas, and ink is bright: 255 where a pixel is all ink.

    Raises:
        DataError: a file is missing.
    """
    parts = {part: _drawings(folder, part) for part in ("background", "evaluation")}
    offset = {"background": 0, "evaluation": len(parts["background"])}
    images: dict[str, list[NDArray[np.uint8]]] = {"train": [], "test": []}
    names = []
    with _file(folder, "omniglot/alphabets.csv").open(encoding="utf-8", newline="") as file:
        alphabets = [row for row in csv.DictReader(file) if int(row["characters"]) >= CHARACTERS]
    for row in alphabets[:ALPHABETS]:
        first = int(row["first_character"])
        for place, number in enumerate(range(first, first + CHARACTERS), start=1):
            ink = averaged(~parts[row["part"]][number - 1 - offset[row["part"]]])
            tested = random.Random(number).sample(range(DRAWINGS), TESTED)
            images["test"].append(ink[sorted(tested)])
            images["train"].append(np.delete(ink, tested, axis=0))
            names.append(f"{row['alphabet']} {place:02}")
    x = {part: torch.from_numpy(np.concatenate(arrays)) for part, arrays in images.items()}
    y = {
        part: torch.arange(len(names)).repeat_interleave(len(of[0])) for part, of in images.items()
    }
    return ImageData("Omniglot", x["train"], y["train"], x["test"], y["test"], tuple(names))


def averaged(ink: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Bits `[N, H, H]` as `[N, 28, 28]`: the share of each new pixel's area, times 255."""
    old = ink.shape[-1]
    edges = np.arange(SIDE + 1) * old / SIDE
    low, high = edges[:-1, None], edges[1:, None]
    pixel = np.arange(old)[None]
    overlap = np.clip(np.minimum(high, pixel + 1) - np.maximum(low, pixel), 0, None) * SIDE / old
    share = overlap @ ink.astype(float) @ overlap.T
    return np.rint(255 * share).astype(np.uint8)


def cifar10(folder: Path | None) -> ImageData:
    """CIFAR-10 from its copy in JPEG, averaged to 16x16 colour: a run then takes minutes.

    The archive is unpacked once, into the cache folder.

    Raises:
        DataError: the file is missing.
    """
    packed = _file(folder, "cifar10-jpeg.tar.xz")
    unpacked = cache_root() / "cifar10-jpeg"
    with one_at_a_time(unpacked.with_suffix(".lock")):
        if not (unpacked / "whole").exists():
            with tarfile.open(packed) as archive:
                archive.extractall(unpacked, filter="data")
            (unpacked / "whole").touch()
    data = load_image_folder(unpacked)
    train, test = (
        avg_pool2d(x.float(), 2).round().to(torch.uint8) for x in (data.train_x, data.test_x)
    )
    name = "CIFAR-10 (JPEG copy, 16x16)"
    return ImageData(name, train, data.train_y, test, data.test_y, data.class_names)


def _drawings(folder: Path | None, part: str) -> NDArray[np.bool_]:
    """The drawings `[characters, 20, 105, 105]` of a part: False is ink."""
    with np.load(_file(folder, f"omniglot/omniglot_images_{part}.npz"), allow_pickle=False) as file:
        return np.asarray(file["images"])


def _file(folder: Path | None, name: str) -> Path:
    path = Path(name) if folder is None else folder / name
    if folder is None or not path.is_file():
        raise DataError("there is no such file: name its folder with --data-dir", at=path)
    return path
