"""Data to measure on: Fashion-MNIST if it is available, else noise of the same shape."""

from __future__ import annotations

import struct
from pathlib import Path

import torch

from benchmarks.speed.setting import Images
from vcl_radial.data.data_files import IDX_NAMES, user_files, user_root
from vcl_radial.errors import DataError
from vcl_radial.files.cache import cache_root


def fashion_or_noise(data_dir: Path | None, scratch: Path, train: int, test: int) -> Images:
    """Fashion-MNIST from `data_dir` or an earlier download, else ten classes of `noise`."""
    try:
        if data_dir is None:
            user_files(user_root(None) or cache_root(), "FashionMNIST")
    except DataError:
        return noise(scratch, 10, train, test)
    return Images("fashion-mnist", data_dir, "Fashion-MNIST")


def noise(scratch: Path, classes: int, train: int, test: int) -> Images:
    """Write random 28x28 images as the IDX files of a data set.

    Args:
        scratch: the folder for temporary files, below which every data set has a folder.
        classes: number of classes.
        train: training images of each class.
        test: test images of each class.
    """
    folder = scratch / f"noise-{classes}-{train}-{test}"
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    for (image_file, label_file), count in ((IDX_NAMES[:2], train), (IDX_NAMES[2:], test)):
        labels = torch.arange(classes, dtype=torch.uint8).repeat(count)
        images = torch.randint(256, (len(labels), 28, 28), dtype=torch.uint8, generator=generator)
        for name, values in ((image_file, images), (label_file, labels)):
            # The layout is 0, 0, type of unsigned bytes, number of dimensions, dimensions, bytes.
            header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
            (folder / name).write_bytes(header + values.numpy().tobytes())
    return Images("idx-folder", folder, f"random 28x28 images of {classes} classes")
