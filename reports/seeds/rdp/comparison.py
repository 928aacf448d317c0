"""Functions of order v and argument z that compute the same value, compared with mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures import curve
from reports.papers.analysis import Setting
from reports.seeds.rdp.exact_bessel import Array
from vcl_radial.reporting.figures.drawing import DASHED, Curve, find, key_line, logarithmic, sheet
from vcl_radial.reporting.figures.style import INK

MPMATH = "mpmath"
SCIPY, SUITE = "scipy, ive", "the suite"

Function: TypeAlias = Callable[[float, Array], Array]


def arguments(setting: Setting) -> Array:
    """The arguments z at which functions are compared."""
    return np.geomspace(0.1, 1e4, 40 if setting.quick else 120)


@dataclass(frozen=True)
class Comparison:
    """Functions of an order and arguments, compared with their exact values.

    Attributes:
        exact: the function by mpmath.
        functions: functions that compute the same, by name.
        colours: colour of each function's line.
        dashed: the function whose line is dashed.
        orders: orders v at which the functions are compared.
        value: name of the computed value, for the panels of values.
        least: the smallest drawn error; smaller errors are drawn there.
        relative: whether errors are relative; otherwise they are in nats.
    """

    exact: Function
    functions: Mapping[str, Function]
    colours: Mapping[str, str]
    dashed: str
    orders: Sequence[int]
    value: str
    least: float
    relative: bool

    @property
    def error(self) -> str:
        """The name of the error, for the panels of errors."""
        return "relative error" if self.relative else "error (nats)"

    def curves(self, setting: Setting) -> list[Curve]:
        """Values by mpmath, and finite values and errors of every function."""
        z, curves = arguments(setting), []
        for v in self.orders:
            exact = self.exact(v, z)
            curves.append(curve(f"{self.value}, v = {v}", MPMATH, z, exact))
            for name, function in self.functions.items():
                value = function(v, z)
                finite = np.isfinite(value)
                error = abs(value - exact) / (exact if self.relative else 1)
                curves.append(curve(f"{self.value}, v = {v}", name, z[finite], value[finite]))
                curves.append(curve(f"{self.error}, v = {v}", name, z[finite], error[finite]))
            setting.say(f"order {v}")
        return curves

    def errors(self, curves: Sequence[Curve], name: str) -> dict[int, Curve]:
        """A function's errors over z, by order."""
        return {v: find(curves, f"{self.error}, v = {v}", name) for v in self.orders}

    def worst(self, curves: Sequence[Curve], name: str) -> dict[int, float]:
        """A function's largest error at every order; infinite where it is never finite."""
        return {v: max(c.y, default=math.inf) for v, c in self.errors(curves, name).items()}

    def finite_from(self, curves: Sequence[Curve], name: str) -> dict[int, float]:
        """The smallest argument at which a function is finite, by order."""
        errors = self.errors(curves, name)
        return {v: min(map(float, c.x), default=math.inf) for v, c in errors.items()}

    def draw(
        self,
        curves: Sequence[Curve],
        title: str,
        orders: Sequence[int],
        published: str,
        most: float,
        scale: Callable[[Axes], object],
    ) -> Figure:
        """Draw a panel of values above a panel of errors for each order.

        Args:
            curves: the result of `curves`.
            title: title of the figure.
            orders: the orders to draw.
            published: the published figure.
            most: upper end of the errors' axis.
            scale: function that scales the vertical axis of values.
        """
        key = [key_line(MPMATH, INK, linewidth=2.4, alpha=0.35)]
        looks = {name: DASHED if name == self.dashed else "-" for name in self.colours}
        key += [key_line(name, c, linestyle=looks[name]) for name, c in self.colours.items()]
        titles = [f"v = {v} ({published})" for v in orders] + [f"error, v = {v}" for v in orders]
        notes = [f"above: {self.value}", f"below: {self.error} against mpmath"]
        n = len(orders)
        with sheet(title, notes, titles, per_line=n, width=1.5, height=1.4, key=key) as (
            figure,
            panels,
        ):
            for v, above, below in zip(orders, panels[:n], panels[n:], strict=True):
                exact = find(curves, f"{self.value}, v = {v}", MPMATH)
                above.plot(exact.x, exact.y, color=INK, linewidth=2.4, alpha=0.35)
                for name, colour in self.colours.items():
                    value = find(curves, f"{self.value}, v = {v}", name)
                    error = np.maximum(self.errors(curves, name)[v].y, self.least)
                    for axes, y in ((above, value.y), (below, error)):
                        axes.plot(value.x, y, color=colour, linewidth=1.1, linestyle=looks[name])
                above.set(xlim=(0.1, 1e4))
                scale(above)
                logarithmic(above, "x", ticks=4)
                below.set(xlabel="z", ylim=(self.least, most), xlim=(0.1, 1e4))
                logarithmic(below, "xy", ticks=4)
            panels[0].set_ylabel(self.value if self.relative else "nats")
            panels[n].set_ylabel(self.error)
        return figure
