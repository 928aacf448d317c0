"""Pixels of the generator: a square with coordinates, and soft shapes drawn into it.

Lengths are in units of the radius of the camera's field: the field is the unit disc, x points to
the right and y down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Plane = NDArray[np.float32]
"""One value per pixel, `[S, S]`."""

HALF_WIDTH = 1.04
"""From the middle of a picture to its edge, so that a rim of black surrounds the field."""

_SUPERSAMPLING = 3


class Canvas:
    """A square of S by S pixels, and the coordinates of their centres."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pixels_per_unit = size / (2 * HALF_WIDTH)
        axis = (np.arange(size) + 0.5) / self.pixels_per_unit - HALF_WIDTH
        self.x: Plane
        self.y: Plane
        self.x, self.y = np.meshgrid(axis.astype(np.float32), axis.astype(np.float32))
        self.radius: Plane = np.hypot(self.x, self.y)

    def plane(self) -> Plane:
        """Zeros."""
        return np.zeros((self.size, self.size), np.float32)

    def noise(self, rng: np.random.Generator, cells: int) -> Plane:
        """Smooth random values of about unit variance, with that many cells along an edge."""
        coarse = rng.standard_normal((cells + 2, cells + 2)).astype(np.float32)
        fine = Image.fromarray(coarse).resize((self.size, self.size), Image.Resampling.BICUBIC)
        return np.asarray(fine) * np.float32(1.35)

    def add_blob(
        self,
        plane: Plane,
        centre: tuple[float, float],
        radius: float,
        amount: float,
        *,
        softness: float = 0.3,
        stretch: float = 1.0,
        angle: float = 0.0,
        ripples: Sequence[tuple[float, float]] = (),
    ) -> None:
        """Raise a plane to `amount` inside an ellipse with a soft and possibly irregular rim.

        A blob smaller than a pixel keeps its area's worth of that pixel.

        Args:
            plane: changed in place, to the greater of old and new.
            centre: of the blob.
            radius: geometric mean of its half axes.
            amount: in the middle.
            softness: width of the rim, as a share of the radius.
            stretch: ratio of the half axes.
            angle: of the longer one, in radians.
            ripples: amplitude (share of the radius) and phase of waves around the rim, from two
                waves per turn upwards.
        """
        pixel = 1 / self.pixels_per_unit
        if radius < 0.6 * pixel:
            amount, radius = amount * (radius / (0.6 * pixel)) ** 2, 0.6 * pixel
        rim = max(softness * radius, 0.5 * pixel)
        reach = radius * max(stretch, 1 / stretch) ** 0.5 * 1.4 + 2 * rim
        window = self._window(centre, reach)
        if window is None:
            return
        dx, dy = self.x[window] - np.float32(centre[0]), self.y[window] - np.float32(centre[1])
        along = (dx * math.cos(angle) + dy * math.sin(angle)) / stretch**0.5
        across = (dy * math.cos(angle) - dx * math.sin(angle)) * stretch**0.5
        limit = np.full_like(dx, radius)
        turn = np.arctan2(across, along)
        for waves, (amplitude, phase) in enumerate(ripples, start=2):
            limit += radius * amplitude * np.cos(waves * turn + phase)
        inside = _step((limit - np.hypot(along, across)) / rim)
        plane[window] = np.maximum(plane[window], np.float32(amount) * inside)

    def strokes(self, strokes: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Plane:
        """Lines that taper: each a path `[n, 2]` with its width at every point `[n]`; 0 to 1.

        A line thinner than a pixel of the finer raster is drawn paler instead.
        """
        edge = self.size * _SUPERSAMPLING
        scale = self.pixels_per_unit * _SUPERSAMPLING
        raster = Image.new("L", (edge, edge))
        draw = ImageDraw.Draw(raster)
        for path, widths in sorted(strokes, key=lambda stroke: float(stroke[1].max())):
            points = [tuple(point) for point in ((path + HALF_WIDTH) * scale - 0.5).tolist()]
            pieces = max(1, len(points) // 8)
            cuts = [k * (len(points) - 1) // pieces for k in range(pieces + 1)]
            for first, last in pairwise(cuts):
                width = float(widths[first : last + 1].mean()) * scale
                grey = round(255 * min(1.0, width))
                draw.line(points[first : last + 1], grey, max(1, round(width)), joint="curve")
        fine = raster.reduce(_SUPERSAMPLING)
        return np.asarray(fine, np.float32) / np.float32(255)

    def _window(self, centre: tuple[float, float], reach: float) -> tuple[slice, slice] | None:
        slices = []
        for middle in (centre[1], centre[0]):
            first = int((middle - reach + HALF_WIDTH) * self.pixels_per_unit)
            last = int((middle + reach + HALF_WIDTH) * self.pixels_per_unit) + 2
            if first >= self.size or last <= 0:
                return None
            slices.append(slice(max(first, 0), min(last, self.size)))
        return slices[0], slices[1]


def _step(x: Plane) -> Plane:
    """From 0 below -1 to 1 above 1, smoothly."""
    t: Plane = np.clip((x + 1) / 2, 0, 1)
    smooth: Plane = t * t * (3 - 2 * t)
    return smooth
