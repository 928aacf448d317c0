"""A folder of image files as a data set, decoded and stored in the cache."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import torch

from vcl_radial.data.data_files import TEST_SHARE, image_files
from vcl_radial.data.decoding import Unreadable, decoded, print_progress, processors, read_picture
from vcl_radial.data.pixel_cache import Decoded, Pixels, digest, file_version, open_pixels
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.errors import DataError, visible
from vcl_radial.system.memory import check_memory


def load_image_folder(
    root: Path, *, image_size: int | None = None, test_share: float = TEST_SHARE, seed: int = 0
) -> ImageData:
    """Read `root/{train,val,test}/CLASS/*` or `root/CLASS/*`, grey or colour.

    `image_files` explains which files count and which are test images. Images are rotated by their
    EXIF entry and reduced to 8 bits per channel, without transparency. If all channels of all
    images are equal the data set is grey, [N, H, W], else colour, [N, 3, H, W].

    The result is stored in the cache folder, and read from there until a file's name, size or time
    changes; see `pixel_cache`.

    Args:
        root: The folder.
        image_size: Number of pixels to which both edges of every image are stretched, antialiased
            (bilinear, as in `torchvision.transforms.Resize((image_size, image_size))`); None: the
            files' own sizes. A JPEG of more than twice that size is decoded at a smaller scale.
        test_share: See `image_files`.
        seed: See `image_files`.

    Raises:
        UserError: The cache cannot be written.
        DataError: Files are missing, damaged, or of different sizes; names the file and the fix.
    """
    files = image_files(root, test_share=test_share, seed=seed)
    parts = (files.train, files.validation, files.test)
    paths = sorted(path for part in parts for images in part for path in images)
    pixels = _pixels(root, paths, image_size)
    row_of = {path: row for row, path in enumerate(paths)}

    def part(classes: Sequence[Sequence[Path]]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [row_of[path] for images in classes for path in images]
        counts = torch.tensor([len(images) for images in classes])
        labels = torch.arange(len(classes)).repeat_interleave(counts)
        return torch.from_numpy(pixels[rows]), labels

    name = visible(root.resolve().name) or str(root)
    x, y = part((*files.train, *files.validation))
    n_train, classes = sum(map(len, files.train)), len(files.class_names)
    held_out = torch.arange(len(y)) >= n_train if files.validation else None
    return ImageData(name, x, y % classes, *part(files.test), files.class_names, held_out)


def _pixels(root: Path, paths: Sequence[Path], image_size: int | None) -> Pixels:
    """All images, [N, H, W] or [N, 3, H, W], from the cache or decoded."""
    pixels = open_pixels(
        f"{root}: images",
        f"image-folders/{digest(str(root.resolve()))[:16]}-{image_size or 'full'}",
        [[str(path.relative_to(root)), file_version(path)] for path in paths],
        [sys.modules[__name__]],
        partial(_decoded, root, paths, image_size),
        report=lambda line: None,
    ).pixels
    return pixels if (pixels != pixels[:, :1]).any() else pixels[:, 0]


def _decoded(root: Path, paths: Sequence[Path], image_size: int | None) -> Decoded:
    size = decode_image(paths[0], image_size).shape[1:]
    check_memory(root, len(paths), *size)
    decode = partial(decode_image, image_size=image_size)

    def in_colour() -> Generator[Pixels, None, None]:
        title = f"{root}: images"
        with closing(decoded(decode, paths, processors(), title, print_progress)) as images:
            for path, image in zip(paths, images, strict=True):
                if (other := image.shape[1:]) != size:
                    raise DataError(
                        f"has {_edges(size)} pixels, but {path} {_edges(other)}: give all images "
                        "one size, or have them resized with --set stream.image_size=N (pixels)",
                        at=paths[0],
                    )
                yield np.broadcast_to(image, (3, *size))

    return (len(paths), 3, *size), in_colour()


def decode_image(path: Path, image_size: int | None) -> Pixels:
    """The pixels of an image: uint8 [1, H, W] if it is grey, else [3, H, W].

    Raises:
        DataError: The image cannot be read; names the file.
    """
    from PIL import Image

    try:
        picture = read_picture(path, None if image_size is None else 2 * image_size)
    except Unreadable as why:
        raise DataError(
            f"cannot be read as an image ({why}): copy it again from its source, save it "
            "with 8 or 16 bits per channel, or delete it",
            at=path,
        ) from None
    if image_size is not None:
        picture = picture.resize((image_size, image_size), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _edges(size: tuple[int, ...]) -> str:
    """Width and height, as text."""
    return f"{size[1]}x{size[0]}"
