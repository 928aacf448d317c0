"""Features of images under a network that is not trained here, computed once and cached.

    <cache>/features/<name>-<fingerprint>/<number>.npz     rows: float16 [at most 1024, D]

The fingerprint covers the images, and the network with its weights and settings. Files are written
whole and hold a checksum, so that an interrupted command resumes with the next file, and a damaged
file is computed again. Batches begin at the same images in either case, so that the numbers are the
same.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from vcl_radial.data.decoding import ReportProgress, print_progress, with_progress
from vcl_radial.data.pixel_cache import digest
from vcl_radial.data.streams.image_data import ImageData
from vcl_radial.data.streams.tensors import tensors_checksum
from vcl_radial.errors import DataError, UserError
from vcl_radial.files import atomic
from vcl_radial.files.cache import cache_root, one_at_a_time

CHUNK: Final = 1024
"""Number of images of a file."""
BATCH: Final = 64
"""Number of images of a forward pass; the largest array in memory has so many."""

Rows: TypeAlias = NDArray[np.float16]
"""Features `[n, D]`: half precision is finer than what decoding a JPEG changes."""


@dataclasses.dataclass(frozen=True)
class Backbone:
    """A fixed network as a map of images to features.

    Attributes:
        name: a short name, for lines to the user and for files.
        identity: what the features depend on besides the images, as values of JSON; with the
            number of a version, which is raised when the code gives other numbers.
        load: returns the map of raw images `[B, ...]` to features `[B, D]`.
        size: pixels along an edge of its inputs; None if it takes images of one size only.
    """

    name: str
    identity: Any
    load: Callable[[], Callable[[Tensor], Tensor]]
    size: int | None = None


def with_backbone(
    data: ImageData, backbone: Backbone, report: ReportProgress = print_progress
) -> ImageData:
    """A data set with features instead of its images, and the same classes.

    Raises:
        UserError: the cache cannot be written, or the network does not take the images.
        DataError: the data have no images.
    """
    parts: dict[str, Any] = {f"{part}_x": _joined(r) for part, r in _parts(data, backbone, report)}
    return dataclasses.replace(data, name=f"{data.name} by {backbone.name}", **parts)


def features_of(
    images: Tensor, data: ImageData, backbone: Backbone, report: ReportProgress = print_progress
) -> Tensor:
    """Features `[n, D]` of some images of a data set.

    Raises:
        UserError: the cache cannot be written, or the network does not take the images.
        DataError: the data have no images.
    """
    title = f"{data.name}: features of {len(images):,} images by {backbone.name}"
    _check_images(data)
    return _joined(feature_rows(backbone, images, title, report))


def write_features(
    data: ImageData, backbone: Backbone, path: Path, report: ReportProgress = print_progress
) -> dict[str, tuple[int, int]]:
    """Write a file for `stream.features`, an array at a time; returns the shapes of its arrays.

    Raises:
        UserError: the file or the cache cannot be written, or the network does not take the images.
        DataError: the data have no images.
    """
    from zipfile import ZipFile

    shapes = {}
    try:
        with atomic.replacing(path) as file, ZipFile(file, "w") as archive:
            for part, rows in _parts(data, backbone, report):
                count, first = len(getattr(data, f"{part}_x")), next(rows)
                shapes[part] = shape = (count, first.shape[1])
                header = {"descr": "<f2", "fortran_order": False, "shape": shape}
                with archive.open(f"{part}.npy", "w", force_zip64=True) as array:
                    np.lib.format.write_array_header_1_0(array, header)
                    for chunk in (first, *rows):
                        array.write(chunk.tobytes())
    except OSError as error:
        raise atomic.not_written(path, error) from None
    return shapes


def _parts(
    data: ImageData, backbone: Backbone, report: ReportProgress
) -> Iterator[tuple[str, Iterator[Rows]]]:
    """Names and rows of the training and the test part."""
    _check_images(data)
    for part in ("train", "test"):
        images: Tensor = getattr(data, f"{part}_x")
        title = f"{data.name}: features of the {part} images by {backbone.name}"
        yield part, feature_rows(backbone, images, title, report)


def _joined(rows: Iterator[Rows]) -> Tensor:
    return torch.from_numpy(np.concatenate([*rows])).float()


def _check_images(data: ImageData) -> None:
    """Check that the inputs of a data set are images.

    Raises:
        DataError: they are not.
    """
    x = data.train_x
    if not (x.ndim == 3 or (x.ndim == 4 and x.shape[1] in (1, 3))):
        raise DataError(
            f"has inputs of {list(x.shape[1:])}, and a network for images wants [H, W], [1, H, W] "
            "or [3, H, W]: leave stream.features out",
            at=data.name,
        )


def feature_rows(
    backbone: Backbone, images: Tensor, title: str, report: ReportProgress
) -> Iterator[Rows]:
    """Yield features of images, `CHUNK` rows at a time, from the cache or computed with progress.

    Args:
        backbone: the network.
        images: raw images `[N, ...]`.
        title: beginning of lines to the user.
        report: takes a line.

    Raises:
        UserError: the cache cannot be written, or the network does not take the images.
    """
    facts = [tensors_checksum(images), str(images.dtype), backbone.identity]
    folder = cache_root() / "features" / f"{backbone.name}-{digest(facts)[:16]}"
    rows = _feature_rows(folder, backbone, images, title, report)
    count = -(-len(images) // CHUNK)
    if all(_file(folder, number).is_file() for number in range(count)):
        return rows
    return with_progress(rows, len(images), title, report, size=len)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:05}.npz"


def _feature_rows(
    folder: Path, backbone: Backbone, images: Tensor, title: str, report: ReportProgress
) -> Iterator[Rows]:
    features: Callable[[Tensor], Tensor] | None = None
    for start in range(0, len(images), CHUNK):
        path = _file(folder, start // CHUNK)
        if (rows := _read(path)) is None:
            try:
                with one_at_a_time(folder.with_suffix(".lock")):
                    if (rows := _read(path)) is None:  # no process with the lock has made it
                        if features is None:
                            report(f"{title}: computed once, and kept in {folder}")
                            features = backbone.load()
                        rows = _computed(features, images[start : start + CHUNK], title)
                        atomic.write(path, _packed(rows))
            except OSError as error:
                raise atomic.not_written(path, error) from None
        yield rows


def _computed(features: Callable[[Tensor], Tensor], images: Tensor, title: str) -> Rows:
    rows = in_batches(features, images)
    if not rows.isfinite().all():
        raise UserError("the network gives numbers that are too large, or none", at=title)
    return np.asarray(rows.cpu().numpy())


def in_batches(features: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """Features of images in half precision, `BATCH` images at a time."""
    with torch.inference_mode():
        return torch.cat([features(batch).half() for batch in torch.split(images, BATCH)])


def _packed(rows: Rows) -> bytes:
    content = io.BytesIO()
    np.savez(content, rows=rows)
    return content.getvalue()


def _read(path: Path) -> Rows | None:
    """The rows of a file; None if it is missing or damaged, which its CRC shows."""
    from zipfile import BadZipFile

    try:
        with np.load(path, allow_pickle=False) as file:
            return np.asarray(file["rows"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def as_colours(images: Tensor) -> Tensor:
    """Images `[B, H, W]`, `[B, 1, H, W]` or `[B, 3, H, W]` as `[B, 3, H, W]`, from 0 to 1.

    Whole numbers are from 0 to 255, others from 0 to 1.
    """
    pixels = images.float() if images.is_floating_point() else images.float() / 255
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels
    return pixels.expand(-1, 3, -1, -1)


def resized(images: Tensor, size: int) -> Tensor:
    """Images `[B, C, H, W]` stretched to `[B, C, size, size]`, bilinear, antialiased if smaller."""
    if images.shape[2:] == (size, size):
        return images
    smaller = min(images.shape[2:]) > size
    return interpolate(
        images, size=(size, size), mode="bilinear", align_corners=False, antialias=smaller
    )


def in_cells(maps: list[Tensor], pool: int) -> Tensor:
    """Averages over pool x pool cells of maps `[B, C, h, w]`, joined to `[B, D]`.

    A map with fewer places along an edge has as many cells as places. Vectors `[B, C]` stay.
    """
    cells = [
        adaptive_avg_pool2d(m, (min(pool, m.shape[2]), min(pool, m.shape[3]))) if m.ndim == 4 else m
        for m in maps
    ]
    return torch.cat([cell.flatten(1) for cell in cells], 1)
