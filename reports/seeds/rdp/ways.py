"""Several ways to compute a function of order v and argument z, held against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.seeds.rdp.exact_bessel import Array
from vcl_radial.reporting.figures.drawing import DASHED, Curve, find, key_line, logarithmic, sheet
from vcl_radial.reporting.figures.style import INK

MPMATH = "mpmath"


@dataclass(frozen=True)
class Ways:
    """Ways to compute a function, and how they are drawn.

    Attributes:
        ways: the function at an order and arguments, by the name of the way.
        colours: colour of each way's line.
        dashed: the way whose line is dashed.
        value: name of the panels of the function.
        error: name of the panels of the errors.
        least: the error at which smaller ones are drawn.
        relative: whether errors are relative.
    """

    ways: Mapping[str, Callable[[float, Array], Array]]
    colours: Mapping[str, str]
    dashed: str
    value: str
    error: str
    least: float
    relative: bool

    def curves(self, v: float, z: Array, exact: Array) -> list[Curve]:
        """The function by mpmath and by every way where it is finite, and the errors there."""
        curves = [Curve(f"{self.value}, v = {v}", MPMATH, z.tolist(), exact.tolist())]
        for name, way in self.ways.items():
            result = way(v, z)
            usable = np.isfinite(result)
            error = abs(result - exact)[usable]
            if self.relative:
                error = error / exact[usable]
            x = z[usable].tolist()
            curves.append(Curve(f"{self.value}, v = {v}", name, x, result[usable].tolist()))
            curves.append(Curve(f"{self.error}, v = {v}", name, x, error.tolist()))
        return curves

    def worst(self, curves: Sequence[Curve], orders: Iterable[int]) -> dict[str, dict[int, float]]:
        """The largest error of every way at every order; infinite where none is finite."""
        return {
            name: {
                v: max(find(curves, f"{self.error}, v = {v}", name).y, default=math.inf)
                for v in orders
            }
            for name in self.ways
        }

    def finite(self, curves: Sequence[Curve], name: str, v: int) -> list[float]:
        """The arguments at which a way gives a finite number."""
        return [float(z) for z in find(curves, f"{self.value}, v = {v}", name).x]

    def sheet(
        self, title: str, notes: Sequence[str], orders: Sequence[int], published: str
    ) -> AbstractContextManager[tuple[Figure, list[Axes]]]:
        """A figure with a panel of the function above a panel of the errors, for each order."""
        return sheet(
            title,
            notes,
            [f"v = {v} ({published})" for v in orders] + [f"error, v = {v}" for v in orders],
            per_line=len(orders),
            width=1.5,
            height=1.4,
            key=[
                key_line(MPMATH, INK, linewidth=2.4, alpha=0.35),
                *(
                    key_line(name, c, linestyle=self._dash(name))
                    for name, c in self.colours.items()
                ),
            ],
        )

    def draw(self, above: Axes, below: Axes, curves: Sequence[Curve], v: int, most: float) -> None:
        """The function at one order and, below it, the errors up to `most`."""
        exact = find(curves, f"{self.value}, v = {v}", MPMATH)
        above.plot(exact.x, exact.y, color=INK, linewidth=2.4, alpha=0.35)
        for name, colour in self.colours.items():
            value, error = (find(curves, f"{p}, v = {v}", name) for p in (self.value, self.error))
            look: dict[str, Any] = {"color": colour, "linewidth": 1.1}
            look["linestyle"] = self._dash(name)
            above.plot(value.x, value.y, **look)
            below.plot(error.x, np.maximum(error.y, self.least), **look)
        above.set(xlim=(0.1, 1e4))
        below.set(xlabel="z", ylim=(self.least, most), xlim=(0.1, 1e4))
        logarithmic(below, "xy", ticks=4)

    def _dash(self, name: str) -> Any:
        return DASHED if name == self.dashed else "-"
