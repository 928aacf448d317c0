"""Local normalisation: it reduces the camera's light and colours, and keeps the lesions.

For each channel x of a square with an edge of S pixels, with w = 1 inside the field of view:

    mean(x) = (g * w x) / (g * w),      g a Gaussian of deviation S / 12, cut off at twice that
    r       = w (x - m) / (m + 10),     m = mean(x)
    y       = 128 + 45 r / (s + 0.02),  s = sqrt(mean(r^2) + 1e-4)

and y = 128 outside a circle with a diameter of 0.92 S, which hides the rim of the field, because
its shape reveals the camera. Means are computed at 48 x 48 knots and interpolated between them. The
two constants keep the noise of dark and of uniform regions small.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

GREY: Final = 128
"""The value of the local mean, and of pixels outside the circle."""

_LIT: Final = 18
"""The value that the brightest channel of a pixel in the field exceeds."""
_KNOTS: Final = 48
_SPREAD: Final = 1 / 12
"""Standard deviation of g over the edge."""
_GAIN: Final = 45
_CIRCLE: Final = 0.92

Planes = NDArray[np.float32]
"""Channels of a square, `[C, S, S]`."""


def locally_normalised(square: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A square photograph `[S, S, 3]` with local mean 128 and local standard deviation about 45."""
    edge = len(square)
    field = (square.max(-1) > _LIT).astype(np.float32)
    values = square.transpose(2, 0, 1) * field
    mean = _local_mean(values, field)
    contrast = field * (values - mean) / (mean + 10)
    deviation = np.sqrt(_local_mean(np.square(contrast), field) + 1e-4)
    axis = np.arange(edge) - (edge - 1) / 2
    circle = axis**2 + axis[:, None] ** 2 < (_CIRCLE * edge / 2) ** 2
    result = np.where(circle, GREY + _GAIN * contrast / (deviation + 0.02), GREY)
    return np.clip(np.rint(result), 0, 255).astype(np.uint8).transpose(1, 2, 0)


def _local_mean(values: Planes, field: NDArray[np.float32]) -> Planes:
    """The mean of values that are 0 outside the field; 0 where the field is far away."""
    weights, between = _matrices(len(field))
    amount = weights @ field @ weights.T
    total = weights @ values @ weights.T
    at_knots = np.divide(total, amount, out=np.zeros_like(total), where=amount > 0)
    mean: Planes = between @ at_knots @ between.T
    return mean


@lru_cache(maxsize=32)  # photographs of one camera have a few edges
def _matrices(edge: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The g from pixels to knots `[K, S]`, and the interpolation back `[S, K]`, on an axis."""
    knots = min(_KNOTS, edge)
    at_knot, at_pixel = ((np.arange(n) + 0.5) / n for n in (knots, edge))
    distance = np.abs(at_knot[:, None] - at_pixel) / _SPREAD
    weights = np.exp(-(distance**2) / 2) * (distance <= 2)
    place = np.clip(at_pixel * knots - 0.5, 0, knots - 1)
    between = np.maximum(0, 1 - np.abs(place[:, None] - np.arange(knots)))
    return weights.astype(np.float32), between.astype(np.float32)
