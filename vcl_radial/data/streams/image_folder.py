"""A folder of image files as a data set, decoded and stored in the cache."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from vcl_radial.data.data_files import TEST_SHARE, image_files
from vcl_radial.data.decoding import Unreadable, decoded, print_progress, processors, read_picture
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.errors import DataError, UserError, visible
from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root
from vcl_radial.files.reading import open_file
from vcl_radial.system.memory import check_memory
from vcl_radial.system.quiet import quiet

_FORMAT: Final = 2
"""Format of a cache file; it changes when the same files give other pixels."""

_PATIENCE: Final = 2.0
"""Seconds of decoding above which its result is stored in the cache."""

Pixels = NDArray[np.uint8]


def load_image_folder(
    root: Path, *, image_size: int | None = None, test_share: float = TEST_SHARE, seed: int = 0
) -> ImageData:
    """Read `root/{train,val,test}/CLASS/*` or `root/CLASS/*`, grey or colour.

    `image_files` explains which files count and which are test images. Images are rotated by their
    EXIF entry and reduced to 8 bits per channel, without transparency. If all channels of all
    images are equal the data set is grey, [N, H, W], else colour, [N, 3, H, W].

    If decoding takes long, the result is stored in the cache folder, and read from there until a
    file's name, size or time changes.

    Args:
        root: The folder.
        image_size: Number of pixels to which both edges of every image are stretched, antialiased
            (bilinear, as in `torchvision.transforms.Resize((image_size, image_size))`); None: the
            files' own sizes. A JPEG of more than twice that size is decoded at a smaller scale.
        test_share: See `image_files`.
        seed: See `image_files`.

    Raises:
        DataError: Files are missing, damaged, or of different sizes; names the file and the fix.
    """
    files = image_files(root, test_share=test_share, seed=seed)
    parts = (files.train, files.validation, files.test)
    paths = sorted(path for part in parts for images in part for path in images)
    pixels = torch.from_numpy(_pixels(root, paths, image_size))
    row_of = {path: row for row, path in enumerate(paths)}

    def part(classes: Sequence[Sequence[Path]]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.tensor([row_of[path] for images in classes for path in images])
        counts = torch.tensor([len(images) for images in classes])
        return pixels.index_select(0, rows), torch.arange(len(classes)).repeat_interleave(counts)

    name = visible(root.resolve().name) or str(root)
    x, y = part((*files.train, *files.validation))
    n_train, classes = sum(map(len, files.train)), len(files.class_names)
    held_out = torch.arange(len(y)) >= n_train if files.validation else None
    return ImageData(name, x, y % classes, *part(files.test), files.class_names, held_out)


def _pixels(root: Path, paths: Sequence[Path], image_size: int | None) -> Pixels:
    """All images, [N, H, W] or [N, 3, H, W], from the cache or decoded."""
    cached = _cache_file(root, paths, image_size)
    if cached is not None:
        with suppress(OSError, ValueError, EOFError):  # damaged or missing: decode again
            with open_file(cached) as file:
                pixels: Pixels = np.load(file, allow_pickle=False)
            if len(pixels) == len(paths) and pixels.dtype == np.uint8:
                return pixels
    started = time.monotonic()
    with quiet():  # Pillow warns of pictures that are rejected here
        pixels = _decoded(root, paths, image_size)
    if cached is not None and time.monotonic() - started > _PATIENCE:
        _store(cached, pixels)
    return pixels


def _cache_file(root: Path, paths: Sequence[Path], image_size: int | None) -> Path | None:
    """The cache file of the pixels of these files; None if there is no cache."""
    folder = str(root.resolve())
    state = hashlib.sha256(f"{_FORMAT}".encode())
    try:
        for path in paths:
            status = path.stat()
            entry = f"{path.relative_to(root)}\0{status.st_size}\0{status.st_mtime_ns}\0"
            state.update(entry.encode(errors="surrogateescape"))
        folder_cache = cache_root() / "image-folders"
    except (OSError, UserError):  # decoding reports the file that cannot be read
        return None
    origin = hashlib.sha256(folder.encode(errors="surrogateescape")).hexdigest()
    return folder_cache / f"{origin[:16]}-{image_size or 'full'}-{state.hexdigest()[:16]}.npy"


def _store(path: Path, pixels: Pixels) -> None:
    """Write pixels into the cache, and delete those of earlier states of the same folder."""
    contents = io.BytesIO()
    np.save(contents, pixels, allow_pickle=False)
    with suppress(OSError):  # without a cache, images are decoded again each time
        atomic.write(path, contents.getbuffer())
        for earlier in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.npy"):
            if earlier != path:
                earlier.unlink()


def _decoded(root: Path, paths: Sequence[Path], image_size: int | None) -> Pixels:
    if image_size is not None:
        check_memory(root, len(paths), image_size, image_size)
    example = _decode(paths[0], image_size)
    size = example.shape[1:]
    check_memory(root, len(paths), *size)
    pixels = np.empty((len(paths), 3, *size), np.uint8)
    colour = False
    images = decoded(
        partial(_decode, image_size=image_size),
        paths,
        processors(),
        f"{root}: images",
        print_progress,
    )
    for row, image in enumerate(images):
        if image.shape[1:] != size:
            raise DataError(
                f"has {_edges(example)} pixels, but {paths[row]} {_edges(image)}: give "
                "all images one size, or have them resized with --set stream.image_size=N (pixels)",
                at=paths[0],
            )
        pixels[row] = image  # a grey one is repeated
        colour = colour or (len(image) > 1 and bool((image != image[0]).any()))
    return pixels if colour else np.ascontiguousarray(pixels[:, 0])


def _decode(path: Path, image_size: int | None) -> Pixels:
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


def _edges(image: Pixels) -> str:
    """Width and height, as text."""
    return f"{image.shape[2]}x{image.shape[1]}"
