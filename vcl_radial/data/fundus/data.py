"""A table of photographs with its pixels, ready for training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.decoding import ReportProgress, Unreadable, decoded, print_progress, processors
from vcl_radial.data.fundus import files, local_normalisation, prepare
from vcl_radial.data.fundus.faults import Fault, OnFault, handle_faults
from vcl_radial.data.fundus.local_normalisation import GREY
from vcl_radial.data.fundus.prepare import Normalise
from vcl_radial.data.fundus.table import Photograph, Photographs, Reader
from vcl_radial.data.pixel_cache import digest, open_pixels
from vcl_radial.errors import bad_value

RowNumbers = Sequence[int] | NDArray[np.int64] | Tensor
"""Numbers of rows of a table, from 0."""

SMALLEST_SIZE = 8


@dataclass(frozen=True, eq=False)
class FundusData:
    """Photographs and their pixels.

    Attributes:
        photographs: photographs that could be decoded; their `faults` names the others.
        size: pixels along an edge.
        surround: the value of pixels outside the field of view.
    """

    photographs: Photographs
    size: int
    surround: int
    _pixels: NDArray[Any] | _ConcatenatedPixels
    _rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.photographs)

    def images(self, rows: RowNumbers) -> Tensor:
        """The pixels of these rows, uint8 `[B, 3, size, size]`; or features, `features.py`."""
        return torch.from_numpy(self._pixels[self._rows[np.asarray(rows, np.int64)]])

    def classes(self) -> Tensor:
        """1 for each referable photograph, 0 for a healthy one, -1 for no grade: int64 `[N]`."""
        return torch.from_numpy(self.photographs.referable)

    def mapped(self, rows_of: Callable[[Tensor], NDArray[Any]]) -> FundusData:
        """The same photographs with other arrays in place of pixels.

        Args:
            rows_of: returns `[M, ...]` for all M cached pictures `[M, 3, size, size]`, of which the
                table may have a part: so every split of a data set has the same arrays.
        """
        return replace(self, _pixels=rows_of(torch.from_numpy(np.array(self._pixels))))

    def select(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> FundusData:
        """The table of these rows, by number or by mask, with the same cache of pixels."""
        numbers = np.arange(len(self))[np.asarray(rows)]
        photographs = self.photographs.select(numbers)
        return replace(self, photographs=photographs, _rows=self._rows[numbers])

    @staticmethod
    def concatenate(tables: Sequence[FundusData]) -> FundusData:
        """The photographs of several tables one after another, all of one size.

        Their pixels stay in their caches. A name or a patient's number may occur twice.
        """
        rows = tuple(row for table in tables for row in table.photographs.rows)
        return replace(
            tables[0],
            photographs=replace(tables[0].photographs, rows=rows),
            _pixels=_ConcatenatedPixels(tables),
            _rows=np.arange(len(rows)),
        )


class _ConcatenatedPixels:
    """The pixels of several tables, indexed as one array."""

    def __init__(self, tables: Sequence[FundusData]) -> None:
        self.tables, self.ends = tables, np.cumsum([len(table) for table in tables])

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        like = self.tables[0].images([0]).numpy()
        pixels = np.empty((len(rows), *like.shape[1:]), like.dtype)
        table_of_row = np.searchsorted(self.ends, rows, side="right")
        for number, (table, end) in enumerate(zip(self.tables, self.ends, strict=True)):
            in_table = table_of_row == number
            pixels[in_table] = table.images(rows[in_table] + len(table) - end).numpy()
        return pixels


def load_pixels(
    photographs: Photographs,
    size: int,
    *,
    crop: bool = True,
    normalise: Normalise = "local",
    on_fault: OnFault = "stop",
    jobs: int | None = None,
    report: ReportProgress = print_progress,
) -> FundusData:
    """Decode a table's photographs, or open the cache of decoded ones.

    The field of view is cut out, padded to a square, normalised and resized; see `prepare`. The
    pixels lie in the cache folder; see `pixel_cache`. Pass a whole table and select rows of the
    result: a table with other rows makes the cache stale.

    Args:
        photographs: the table.
        size: pixels along an edge.
        crop: whether the field of view is cut out.
        normalise: "local" removes light and colours of the camera, "none" keeps them.
        on_fault: "stop" at photographs that cannot be decoded, or "skip" them; either way they are
            counted and named in one line.
        jobs: number of threads that decode; by default one per processor.
        report: takes a line for the user.

    Raises:
        UserError: the size is impossible, or the cache cannot be written.
        DataError: photographs cannot be decoded, and the user chose to stop.
    """
    if size < SMALLEST_SIZE:
        raise bad_value("size", size, f"must be at least {SMALLEST_SIZE} pixels")
    reader, title = photographs.reader, f"pixels of {photographs.name} at {size} px"
    settings = {"size": size, "crop": crop, "normalise": normalise, "origin": reader.origin}
    decode = partial(decode_one, reader, size=size, crop=crop, normalise=normalise)
    cache = open_pixels(
        title,
        f"fundus/{photographs.name}-{size}px-{digest(settings)[:8]}",
        [settings, [[row.name, reader.version(row)] for row in photographs.rows]],
        (prepare, local_normalisation, files),
        lambda: (
            (len(photographs), 3, size, size),
            decoded(decode, photographs.rows, jobs or processors(), title, report),
        ),
        report,
    )
    faults = [
        Fault(photographs.rows[row].name, "damaged", reason)
        for row, reason in cache.unreadable.items()
    ]
    handle_faults(photographs.name, faults, len(photographs), on_fault, report)
    rows = np.delete(np.arange(len(photographs)), [*cache.unreadable])
    readable = replace(photographs.select(rows), faults=(*photographs.faults, *faults))
    surround = GREY if normalise == "local" else 0
    return FundusData(readable, size, surround, cache.pixels, rows)


def decode_one(
    reader: Reader, photograph: Photograph, size: int, crop: bool, normalise: Normalise
) -> NDArray[np.uint8] | str:
    """The pixels `[3, size, size]` of a photograph, or the reason why there are none."""
    try:
        square = prepare.squared(reader.read(photograph, size), size, crop, normalise)
    except Unreadable as reason:
        return str(reason)
    return square.transpose(2, 0, 1)
