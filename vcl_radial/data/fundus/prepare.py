"""The preparation of a photograph, done once: from any size to a square of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vcl_radial.data.fundus.local_normalisation import locally_normalised

if TYPE_CHECKING:
    from PIL import Image

_LIT = 0.25
"""Share of the brightest pixels' value from which on a pixel is lit."""
_ENOUGH = 0.15
"""Share of lit pixels from which on a row or column belongs to the field.

Photographs that were equalised have specks all over their black margin: fewer than this.
"""


Normalise = Literal["local", "none"]
"""Normalisation of the colours: see `local_normalisation`."""

Box = tuple[int, int, int, int]
"""Left, upper, right and lower edge in pixels."""


def field_of_view(picture: Image.Image) -> Box:
    """The smallest box around the camera's field; the whole picture if the field is not visible.

    A black photograph still counts: it should be sent to an expert.
    """
    wide, high = picture.size
    small = picture.reduce(max(1, min(wide, high) // 128))
    values = np.asarray(small.convert("RGB")).max(axis=-1)
    lit = values > _LIT * float(np.percentile(values, 99))
    columns, rows = (_extent(lit.mean(axis=axis) > _ENOUGH) for axis in (0, 1))
    if columns is None or rows is None:
        return 0, 0, wide, high
    across, down = wide / small.size[0], high / small.size[1]
    return (
        round(columns[0] * across),
        round(rows[0] * down),
        min(round(columns[1] * across), wide),
        min(round(rows[1] * down), high),
    )


def _extent(lit: NDArray[np.bool_]) -> tuple[int, int] | None:
    """First and one past the last place of the field along an axis; None where all is dark.

    It is the longest run of lit places, unless this run has less than half of all lit places: then
    a shadow crosses the field.
    """
    steps = np.diff(lit.astype(np.int8), prepend=0, append=0)
    starts, stops = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    if not len(starts):
        return None
    longest = int(np.argmax(stops - starts))
    first, last = int(starts[longest]), int(stops[longest])
    if 2 * (last - first) < stops[-1] - starts[0]:
        return int(starts[0]), int(stops[-1])
    return first, last


def squared(
    picture: Image.Image, size: int, crop: bool = True, normalise: Normalise = "local"
) -> NDArray[np.uint8]:
    """A square `[size, size, 3]` with the whole field of view, in its original proportions.

    The field is cut out, padded with black to a square, normalised and resized with antialiasing,
    in this order: lesions are smaller than a pixel of the result.

    Args:
        picture: picture in RGB.
        size: pixels along an edge.
        crop: whether the field is cut out; if not, the whole picture is padded and resized.
        normalise: "local", or "none" for the colours of the camera.
    """
    from PIL import Image

    left, upper, right, lower = field_of_view(picture) if crop else (0, 0, *picture.size)
    edge = max(right - left, lower - upper)
    # Beyond the picture, `crop` gives black.
    left -= (edge - (right - left)) // 2
    upper -= (edge - (lower - upper)) // 2
    square = picture.crop((left, upper, left + edge, upper + edge))
    if normalise == "local":
        square = Image.fromarray(locally_normalised(np.asarray(square)))
    if edge != size:
        square = square.resize((size, size), Image.Resampling.LANCZOS)
    return np.asarray(square)
