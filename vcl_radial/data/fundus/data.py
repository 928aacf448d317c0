"""A table of photographs with its pixels, ready for training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.decoding import processors
from vcl_radial.data.fundus.faults import Fault, OnFault, ReportProgress, handle_faults, tell_user
from vcl_radial.data.fundus.local_normalisation import GREY
from vcl_radial.data.fundus.pixel_cache import open_pixels
from vcl_radial.data.fundus.prepare import Normalise
from vcl_radial.data.fundus.table import Photographs
from vcl_radial.errors import bad_value

Places = Sequence[int] | NDArray[np.int64] | Tensor
"""Rows of a table, by place."""

SMALLEST_SIZE = 8


@dataclass(frozen=True, eq=False)
class FundusData:
    """Photographs and their pixels.

    Attributes:
        photographs: those that could be decoded; `faults` names the others.
        size: pixels along an edge.
        surround: the value of pixels outside the field of view.
    """

    photographs: Photographs
    size: int
    surround: int
    _pixels: NDArray[np.uint8] | Tensor | _PixelsOfAll
    _rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.photographs)

    def images(self, places: Places) -> Tensor:
        """The pixels of these rows, uint8 `[B, 3, size, size]`, on the device where they lie."""
        wanted = self._rows[np.asarray(places, np.int64)]
        if isinstance(self._pixels, Tensor):
            rows = torch.from_numpy(wanted).to(self._pixels.device)
            return self._pixels.index_select(0, rows)
        return torch.from_numpy(self._pixels[wanted])

    def classes(self) -> Tensor:
        """1 for each referable photograph, 0 for a healthy one, -1 for no grade: int64 `[N]`."""
        return torch.from_numpy(self.photographs.referable)

    def select(self, places: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> FundusData:
        """These rows, by place or by mask, with the same pixels in the same cache."""
        chosen = np.arange(len(self))[np.asarray(places)]
        return replace(self, photographs=self.photographs.select(chosen), _rows=self._rows[chosen])

    def on(self, device: torch.device | str) -> FundusData:
        """With all pixels in the memory of a device: `len * 3 * size^2` bytes."""
        places = np.arange(len(self))
        return replace(self, _pixels=self.images(places).to(device), _rows=places)

    @staticmethod
    def together(tables: Sequence[FundusData]) -> FundusData:
        """The photographs of several tables one after another, all of one size.

        Their pixels stay where they lie. A name or a patient's number may be there twice.
        """
        rows = tuple(row for table in tables for row in table.photographs.rows)
        return replace(
            tables[0],
            photographs=replace(tables[0].photographs, rows=rows),
            _pixels=_PixelsOfAll(tables),
            _rows=np.arange(len(rows)),
        )


class _PixelsOfAll:
    """The pixels of several tables, indexed as one array."""

    def __init__(self, tables: Sequence[FundusData]) -> None:
        self.tables, self.ends = tables, np.cumsum([len(table) for table in tables])

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        size = self.tables[0].size
        pixels = np.empty((len(rows), 3, size, size), np.uint8)
        of_row = np.searchsorted(self.ends, rows, side="right")
        for number, (table, end) in enumerate(zip(self.tables, self.ends, strict=True)):
            here = of_row == number
            pixels[here] = table.images(rows[here] + len(table) - end).cpu().numpy()
        return pixels


def load_pixels(
    photographs: Photographs,
    size: int,
    *,
    crop: bool = True,
    normalise: Normalise = "local",
    on_fault: OnFault = "stop",
    jobs: int | None = None,
    tell: ReportProgress = tell_user,
) -> FundusData:
    """Decode a table's photographs, or open what was decoded before.

    The field of view is cut out, padded to a square, normalised and resized; see `prepare`. The
    pixels lie in the cache folder; see `pixel_cache`. Give it a whole table and take rows of what
    it returns: a table with other rows makes the cache stale.

    Args:
        photographs: the table.
        size: pixels along an edge.
        crop: whether the field of view is cut out.
        normalise: "local" takes light and colours of the camera away, "none" leaves them.
        on_fault: "stop" at photographs that cannot be decoded, or "skip" them; either way they are
            counted and named in one line.
        jobs: how many are decoded at a time; by default one per processor.
        tell: takes a line for the user.

    Raises:
        UserError: the size is impossible, or the cache cannot be written.
        DataError: photographs cannot be decoded, and the user chose to stop.
    """
    if size < SMALLEST_SIZE:
        raise bad_value("size", size, f"must be at least {SMALLEST_SIZE} pixels")
    cache = open_pixels(photographs, size, crop, normalise, jobs or processors(), tell)
    faults = [Fault(name, "damaged", why) for name, why in cache.unreadable.items()]
    handle_faults(photographs.name, faults, len(photographs), on_fault, tell)
    names = [row.name for row in photographs.rows]
    rows = np.array([k for k, name in enumerate(names) if name not in cache.unreadable], np.int64)
    kept = replace(photographs.select(rows), faults=(*photographs.faults, *faults))
    surround = GREY if normalise == "local" else 0
    return FundusData(kept, size, surround, cache.pixels, rows)
