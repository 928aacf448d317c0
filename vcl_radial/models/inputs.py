"""The inputs of `vcl-radial predict`: images, arrays, tables and data sets, batch by batch."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from vcl_radial.data.cells import plain_number
from vcl_radial.data.class_folders import is_image
from vcl_radial.data.data_files import expanded
from vcl_radial.data.decoding import decoded, print_progress, processors, with_progress
from vcl_radial.data.streams.datasets import DATASETS, load_dataset
from vcl_radial.data.streams.image_folder import decode_image
from vcl_radial.errors import DataError, UserError
from vcl_radial.files.reading import data_errors, open_file
from vcl_radial.files.rows import read_rows

BATCH = 1024
"""Number of inputs that are read and predicted together."""

LABELS: Final = "y"
"""Name of the labels: an array of an .npz file, or a column of a CSV file."""

_NO_LIMIT = 1 << 62

Array = NDArray[Any]


class Batch(NamedTuple):
    """Some inputs: their names, `[n, ...]` raw values, and labels as texts, None if unknown."""

    names: Sequence[str | int]
    x: Array
    labels: Sequence[str | None]


@dataclass(frozen=True)
class Form:
    """What a model takes.

    Attributes:
        shape: shape of an input: channels, height and width, or the numbers of a vector.
        image_size: edge to which images are stretched; None: their own size.
        permuted: whether the pixels of each task have their own order, which files do not have.
        decode: reads an image file as `shape`; None: its pixels as they are.
    """

    shape: tuple[int, ...]
    image_size: int | None = None
    permuted: bool = False
    decode: Callable[[Path], Array] | None = None


def read_inputs(data: str, form: Form, data_dir: Path | None = None) -> Iterator[Batch]:
    """Read inputs by a path or a name, with progress on the standard error output.

    Args:
        data: a folder of images, of which folders in it name the classes; an .npz file with the
            array `x` `[N, ...]` and optionally `y` `[N]`; a CSV file with a row of numbers for each
            input and optionally a column `y`; or the name of a data set, for its test part.
        form: what the model takes.
        data_dir: the folder of a data set's files.

    Raises:
        UserError: there is no such path or name.
        DataError: a file is damaged or does not fit the model; the message names it.
    """
    path = expanded(Path(data))
    if form.permuted and (data in DATASETS or path.is_dir()):
        raise UserError(
            "has pixels in their own order, and the model's tasks have others: give an .npz or "
            ".csv file in the order of the task",
            at=data,
        )
    if data in DATASETS:
        return _in_data_set(data, data_dir)
    if path.is_dir():
        return _in_folder(path, form)
    if path.name.endswith((".csv", ".csv.gz")):
        return with_progress(_in_table(path, form), None, data, size=_size)
    if path.suffix == ".npz":
        return _in_arrays(path, form)
    raise UserError(
        "is no folder of images, .npz file, .csv file or data set "
        f"({', '.join(sorted(DATASETS))}); name one",
        at=data,
    )


def _size(batch: Batch) -> int:
    return len(batch.names)


def _in_data_set(name: str, data_dir: Path | None) -> Iterator[Batch]:
    data = load_dataset(name, data_dir)
    labels = [data.class_names[label] for label in data.test_y.tolist()]
    x = data.test_x.numpy()
    starts = range(0, len(x), BATCH)
    batches = (
        Batch(range(at, min(at + BATCH, len(x))), x[at : at + BATCH], labels[at : at + BATCH])
        for at in starts
    )
    return with_progress(batches, len(x), name, size=_size)


def _in_folder(root: Path, form: Form) -> Iterator[Batch]:
    paths = sorted(
        path
        for path in root.rglob("*")
        if is_image(path) and not any(p.startswith(".") for p in path.relative_to(root).parts)
    )
    if not paths:
        raise DataError("holds no image; name a folder with some", at=root)
    decode = form.decode or partial(_fitting_image, form=form)
    with closing(decoded(decode, paths, processors(), f"{root}: images", print_progress)) as images:
        for at in range(0, len(paths), BATCH):
            part = [path.relative_to(root) for path in paths[at : at + BATCH]]
            labels = [path.parts[0] if len(path.parts) > 1 else None for path in part]
            x = np.stack(list(islice(images, len(part))))
            yield Batch([str(path) for path in part], x, labels)


def _fitting_image(path: Path, form: Form) -> Array:
    """The pixels of an image `[C, H, W]` in the form of a model.

    Raises:
        DataError: the image cannot be read, or has another size or more channels.
    """
    image: Array = decode_image(path, form.image_size)
    height, width = image.shape[1:]
    size, takes = _pixels_of(form, height * width)
    if size != (height, width):
        raise DataError(f"has {width}x{height} pixels, and the model takes {takes}", at=path)
    channels = form.shape[0] if len(form.shape) == 3 else form.shape[0] // (height * width)
    if len(image) > channels:
        if (image != image[:1]).any():
            raise DataError("is in colour, and the model takes grey images", at=path)
        image = image[:1]
    return np.broadcast_to(image, (channels, height, width))


def _pixels_of(form: Form, pixels: int) -> tuple[tuple[int, int] | None, str]:
    """Height and width of a model's images, and what it takes, in words.

    A model of vectors does not know the size: it takes square images if its numbers fit a square in
    grey or in colour, and else does not take images.
    """
    if len(form.shape) == 3:
        return (form.shape[1], form.shape[2]), f"{form.shape[2]}x{form.shape[1]}"
    (D,) = form.shape
    for channels in (1, 3):
        edge = math.isqrt(D // channels)
        if channels * edge**2 == D:
            return (edge, edge), f"{edge}x{edge}"
    return None, f"{D} numbers, which no square image has: give an .npz or .csv file"


def _in_arrays(path: Path, form: Form) -> Iterator[Batch]:
    labels: list[str | None] = []
    with (
        data_errors(path, "write it with numpy.savez"),
        open_file(path) as content,
        zipfile.ZipFile(content) as file,
    ):
        names = {n.removesuffix(".npy") for n in file.namelist() if n.endswith(".npy")}
        if "x" not in names:
            raise DataError(f"has the arrays {', '.join(sorted(names))}, and no x", at=path)
        if LABELS in names:
            with file.open(f"{LABELS}.npy") as member:
                y = np.lib.format.read_array(member, allow_pickle=False)
            if y.ndim != 1:
                raise DataError(f"{LABELS} has shape {[*y.shape]}, not [N]", at=path)
            labels = _texts(y)
        with file.open("x.npy") as member:
            shape, by_columns, dtype = _header(member)
            if len(shape) < 2 or min(shape) < 0 or dtype.hasobject or dtype.kind not in "biuf":
                raise DataError(
                    f"x has shape {[*shape]} of {dtype}, not [N, ...] of numbers", at=path
                )
            if math.prod(shape[1:]) != math.prod(form.shape):
                takes = ", ".join(map(str, ("N", *form.shape)))
                raise DataError(f"x has shape {[*shape]}, and the model takes [{takes}]", at=path)
            if by_columns:
                raise DataError("x is in Fortran order; write numpy.ascontiguousarray(x)", at=path)
            if labels and len(labels) != shape[0]:
                raise DataError(f"has {shape[0]} inputs and {len(labels)} labels", at=path)
            batches = _rows_of(member, shape, dtype, labels, path)
            yield from with_progress(batches, shape[0], str(path), size=_size)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = (
        npy.read_array_header_1_0 if npy.read_magic(member) == (1, 0) else npy.read_array_header_2_0
    )
    return read(member)


def _rows_of(
    member: IO[bytes],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    labels: Sequence[str | None],
    path: Path,
) -> Iterator[Batch]:
    """The rows of an array, read a batch at a time."""
    row = math.prod(shape[1:]) * dtype.itemsize
    for at in range(0, shape[0], BATCH):
        end = min(at + BATCH, shape[0])
        content = member.read((end - at) * row)
        if len(content) < (end - at) * row:
            raise DataError("x ends before its last row; write it again", at=path)
        x = np.frombuffer(bytearray(content), dtype).reshape(end - at, *shape[1:])
        x = x.astype(dtype.newbyteorder("="), copy=False)
        _check_finite(x, range(at, end), path)
        yield Batch(range(at, end), x, labels[at:end] or [None] * (end - at))


def _texts(labels: Array) -> list[str | None]:
    """Labels as texts: whole numbers without a decimal point, None for one that is not a number."""
    texts: list[str | None] = []
    for label in labels.tolist():
        if isinstance(label, float):
            whole = math.isfinite(label) and label.is_integer()
            texts.append(None if math.isnan(label) else str(int(label) if whole else label))
        else:
            texts.append(str(label))
    return texts


def _in_table(path: Path, form: Form) -> Iterator[Batch]:
    rows = read_rows(path, _NO_LIMIT, _NO_LIMIT)
    _, header = next(rows)
    if all(plain_number(name) is not None for name in header):
        raise DataError("begins with numbers: put a name above each column", at=path)
    D = math.prod(form.shape)
    label_at = header.index(LABELS) if LABELS in header and len(header) == D + 1 else None
    if len(header) != D and label_at is None:
        raise DataError(
            f"has {len(header)} columns, and the model takes {D}, or {D + 1} with a column "
            f"{LABELS} of labels",
            at=path,
        )
    while part := list(islice(rows, BATCH)):
        numbers, all_cells = zip(*part, strict=True)
        labels: list[str | None] = [None] * len(part)
        if label_at is not None:
            labels = [_label(cells.pop(label_at)) for cells in all_cells]
            names = [name for name in header if name != LABELS]
        else:
            names = header
        try:
            x = _numbers(all_cells)
        except ValueError:
            number, column, text = next(
                (number, column, text)
                for number, cells in part
                for column, text in zip(names, cells, strict=True)
                if plain_number(text) is None
            )
            raise DataError(
                f"row {number}, column {column!r} is {text[:50]!r}, not a plain number", at=path
            ) from None
        _check_finite(x, numbers, path)
        yield Batch(numbers, x.astype(np.float32).reshape(len(x), *form.shape), labels)


def _numbers(cells: Sequence[Sequence[str]]) -> Array:
    """The numbers of rows of cells, float64.

    Raises:
        ValueError: a cell is no number, or one in the form of Python alone, such as 1_0.
    """
    text = "".join(chain.from_iterable(cells))
    if "_" in text or not text.isascii():
        raise ValueError
    return np.array(cells, dtype=np.float64)


def _label(text: str) -> str:
    value = plain_number(text)
    return str(int(value)) if value is not None and value.is_integer() else text


def _check_finite(x: Array, rows: Sequence[int], path: Path) -> None:
    if x.dtype.kind == "f" and not (finite := np.isfinite(x)).all():
        row = int(np.argmin(finite.reshape(len(x), -1).all(1)))
        raise DataError(f"row {rows[row]} has a number that is not finite", at=path)
