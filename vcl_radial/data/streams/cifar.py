"""CIFAR-10 (Krizhevsky 2009): the official binary files, or a copy as JPEG files in an archive."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
import torch
from torch import Tensor

from vcl_radial.data.data_files import CIFAR10_ARCHIVE, CIFAR10_FILES, CIFAR10_FOLDER, cifar10_files
from vcl_radial.data.decoding import print_progress, with_progress
from vcl_radial.data.pixel_cache import Decoded, Pixels, digest, file_version, open_pixels
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.errors import DataError
from vcl_radial.files.reading import LARGE, data_errors, open_data, read_bytes

CLASSES: Final = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
TRAIN, TEST = 5000, 1000
"""Images of a class."""

_EDGE = 32
_ROW = 1 + 3 * _EDGE**2


def load_cifar10(name: str, data_dir: Path | None) -> ImageData:
    """50,000 training and 10,000 test images of 32x32 pixels in colour, ten classes.

    In `data_dir` or `$VCL_RADIAL_DATA` are the official files in `cifar-10-batches-bin/`, or else
    `cifar10-jpeg.tar.xz` with `train/CLASS/*.jpg` and `test/CLASS/*.jpg`. That copy is lossy, and
    its results are named so. The official files for Python are pickles, and are never read.

    Raises:
        UserError: no folder was named, or the cache cannot be written.
        DataError: files are missing or damaged.
    """
    path = cifar10_files(data_dir)
    if path.name == CIFAR10_ARCHIVE:
        return _from_archive(name, path)
    parts = [_from_file(path / file) for file in CIFAR10_FILES]
    x, y = (torch.cat(tensors) for tensors in zip(*parts[:-1], strict=True))
    return ImageData(name, x, y, *parts[-1], CLASSES)


def _from_file(path: Path) -> tuple[Tensor, Tensor]:
    """Images and classes of a file with rows of a class and 3 x 32 x 32 pixels."""
    fix = f"copy {CIFAR10_FOLDER} again"
    with data_errors(path, fix):
        content = np.frombuffer(read_bytes(path), np.uint8)
    if not len(content) or len(content) % _ROW:
        raise DataError(f"has {len(content):,} bytes, not rows of {_ROW:,}; {fix}", at=path)
    rows = torch.from_numpy(content.reshape(-1, _ROW).copy())
    if int(rows[:, 0].max()) >= len(CLASSES):
        raise DataError(f"has a class {int(rows[:, 0].max())}, above 9; {fix}", at=path)
    return rows[:, 1:].reshape(-1, 3, _EDGE, _EDGE), rows[:, 0].long()


def _from_archive(name: str, path: Path) -> ImageData:
    pixels = open_pixels(
        f"{path.name}: images",
        f"archives/{digest(str(path.resolve()))[:16]}",
        file_version(path),
        [sys.modules[__name__]],
        partial(_decoded, path),
        print_progress,
    ).pixels
    images = torch.from_numpy(np.array(pixels))  # a copy, for the file is mapped read-only
    train = len(CLASSES) * TRAIN
    labels = [torch.arange(len(CLASSES)).repeat_interleave(count) for count in (TRAIN, TEST)]
    return ImageData(name, images[:train], labels[0], images[train:], labels[1], CLASSES)


def _decoded(path: Path) -> Decoded:
    return (len(CLASSES) * (TRAIN + TEST), 3, _EDGE, _EDGE), _in_order(path)


def _in_order(path: Path) -> Generator[Pixels | str, None, None]:
    """The pixels of all images: training before test, by class, by the names of files."""
    from PIL import Image

    expected = [(part, c) for part in ("train", "test") for c in CLASSES]
    images: dict[tuple[str, str], dict[str, Pixels]] = {key: {} for key in expected}
    fix = "pack train/CLASS/*.jpg and test/CLASS/*.jpg of CIFAR-10 again"
    total = len(CLASSES) * (TRAIN + TEST)
    with (
        data_errors(path, fix),
        _tar_errors(),
        open_data(path, LARGE) as file,
        tarfile.open(fileobj=file, mode="r|") as archive,
    ):
        for member in with_progress(archive, total, f"{path.name}: images"):
            *_, part, label, file_name = ("", "", *PurePosixPath(member.name).parts)
            if not member.isfile() or (part, label) not in images:
                continue
            content = archive.extractfile(member)
            assert content is not None
            with Image.open(io.BytesIO(content.read(1 << 20)), formats=["JPEG"]) as picture:
                pixels = np.asarray(picture.convert("RGB"))
            if pixels.shape != (_EDGE, _EDGE, 3):
                raise ValueError(f"{member.name} has {pixels.shape[1]}x{pixels.shape[0]} pixels")
            images[part, label][file_name] = pixels.transpose(2, 0, 1)
    for (part, label), found in images.items():
        if len(found) != (count := TRAIN if part == "train" else TEST):
            raise DataError(f"has {len(found)} images {part}/{label}, not {count}; {fix}", at=path)
    for found in images.values():
        yield from (found[file_name] for file_name in sorted(found))


@contextmanager
def _tar_errors() -> Iterator[None]:
    """Raise the errors of a damaged archive inside as a `ValueError`."""
    try:
        yield
    except tarfile.TarError as error:
        raise ValueError(str(error)) from None
