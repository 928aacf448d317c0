"""Data to measure on: Fashion-MNIST where it is there, else noise of the same shape."""

from __future__ import annotations

import struct
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.speed.setting import Images
from vcl_radial.cache import cache_root
from vcl_radial.data_files import IDX_NAMES, user_files, user_root
from vcl_radial.errors import DataError


def fashion_or_noise(
    data_dir: Path | None, scratch: Path, train_images: int, test_images: int
) -> Images:
    """Fashion-MNIST if it is at hand, else ten classes of noise; nothing is downloaded.

    Raises:
        UserError: `data_dir` is named, but Fashion-MNIST is not in it (found when it is read).
    """
    if data_dir is not None or _is_at_hand("FashionMNIST"):
        return Images("fashion-mnist", data_dir, "Fashion-MNIST")
    return noise(scratch / "images", 10, train_images, test_images)


def noise(folder: Path, classes: int, train_images: int, test_images: int) -> Images:
    """Write random 28x28 images as the IDX files of a data set, so many of each class."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    for part, count in ((IDX_NAMES[:2], train_images), (IDX_NAMES[2:], test_images)):
        labels = torch.arange(classes, dtype=torch.uint8).repeat(count)
        images = torch.randint(256, (len(labels), 28, 28), dtype=torch.uint8, generator=generator)
        for name, values in zip(part, (images, labels), strict=True):
            (folder / name).write_bytes(_idx(values))
    return Images("idx-folder", folder, f"random 28x28 images of {classes} classes")


def _idx(values: Tensor) -> bytes:
    """The IDX format: 0, 0, the type of unsigned bytes, the dimensions, then the bytes."""
    return struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + (
        values.numpy().tobytes()
    )


def _is_at_hand(folder: str) -> bool:
    try:
        user_files(user_root(None) or cache_root(), folder)
    except DataError:
        return False
    return True
