"""Curves and their CSV file; panels, lines and axes with one look in all figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from vcl_radial.reporting.figures.panels import finish, panel_title, panels
from vcl_radial.reporting.figures.style import FAINT, INK, SMALL_SIZE, house_style, method_styles

_STYLES = method_styles(["radial-vcl", "gaussian-vcl", "radial-vcl-eq44"])
RADIAL = _STYLES["radial-vcl"].colour
GAUSSIAN = _STYLES["gaussian-vcl"].colour
EQ44 = _STYLES["radial-vcl-eq44"].colour
OTHER = "#009e73"
DASHED = (0, (4, 2))
DOTTED = (0, (1, 1.5))


@dataclass(frozen=True)
class Curve:
    """One line, set of dots or set of bars of a picture; the CSV holds the same numbers.

    Attributes:
        panel: name of the panel.
        name: name of the curve.
        x: positions, or names of positions.
        y: values.
        low: lower ends of a band or of error bars; None without these.
        high: upper ends of a band or of error bars; None without these.
    """

    panel: str
    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def at(self, x: float | str) -> float:
        """The value at one of the positions."""
        return self.y[list(self.x).index(x)]


def find(curves: Sequence[Curve], panel: str, name: str) -> Curve:
    """The curve of that panel and name."""
    return next(curve for curve in curves if (curve.panel, curve.name) == (panel, name))


def to_csv(curves: Sequence[Curve]) -> str:
    """The numbers of a picture as tidy CSV in full precision."""
    tables = [pd.DataFrame(vars(curve), dtype=object) for curve in curves]
    return pd.concat(tables).rename(columns={"name": "curve"}).to_csv(index=False)


@contextmanager
def sheet(
    title: str,
    notes: Sequence[str],
    titles: Sequence[str],
    *,
    per_line: int,
    width: float,
    height: float,
    key: Sequence[Line2D] = (),
    grid: Literal["both", "x", "y"] | None = "both",
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Make a figure in the house style with one panel per title, and yield it for drawing.

    Args:
        title: title of the figure.
        notes: phrases below the title; the drawing may add some.
        titles: titles of the panels; empty for a panel without one.
        per_line: number of panels in a line.
        width: width of a panel's axes in inches.
        height: height of a panel's axes in inches.
        key: labelled lines for a legend of all panels, in lines above them.
        grid: the axes whose ticks have grid lines.
    """
    with house_style():
        figure, all_axes = panels(len(titles), per_line)
        for axes, text in zip(all_axes, titles, strict=True):
            panel_title(axes, text, width + 0.3)  # there is room before the next panel
            if grid is not None:
                axes.grid(axis=grid, color=FAINT, linewidth=0.4)
        yield figure, all_axes
        finish(figure, (width, height), title, notes, key)


def key_line(text: str, colour: str, **look: Any) -> Line2D:
    """A line of the legend of all panels."""
    return Line2D([], [], color=colour, label=text, **_with(look, linewidth=1.4))


def _with(look: dict[str, Any], **usual: Any) -> dict[str, Any]:
    """A look, completed by the usual look."""
    return usual | look


def line(axes: Axes, curve: Curve, colour: str, **look: Any) -> None:
    """Draw a curve with its band, if any; its name is the label."""
    axes.plot(curve.x, curve.y, color=colour, **_with(look, linewidth=1.4, label=curve.name))
    if curve.low is not None and curve.high is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)


def dots(axes: Axes, curve: Curve, colour: str, **look: Any) -> None:
    """Draw a curve as dots with its error bars, if any."""
    look = _with(look, markersize=3.2, label=curve.name, marker="o", linestyle="none")
    errors = None
    if curve.low is not None and curve.high is not None:
        errors = np.subtract(curve.y, curve.low), np.subtract(curve.high, curve.y)
    axes.errorbar(curve.x, curve.y, errors, color=colour, elinewidth=0.8, **look)


def legend(axes: Axes, **look: Any) -> None:
    """Draw the legend of a panel in small letters on white."""
    look = _with(look, loc="best", fontsize=SMALL_SIZE, handlelength=1.8, labelspacing=0.35)
    box = axes.legend(frameon=True, edgecolor="none", framealpha=0.85, borderpad=0.2, **look)
    box.set_zorder(5)


def mark(axes: Axes, x: float, text: str, **look: Any) -> None:
    """Draw a thin vertical line with a text beside it, near the top of the panel."""
    axes.axvline(x, color=INK, linewidth=0.7, linestyle=DOTTED, zorder=1)
    look = _with(look, ha="left", va="top", fontsize=SMALL_SIZE)
    offset = (3 if look["ha"] == "left" else -3, -2)
    axes.annotate(
        text,
        (x, 1.0),
        offset,
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        **look,
    )


def label(axes: Axes, x: float, y: float, text: str, colour: str, **look: Any) -> None:
    """Write the name of a line beside it in its colour."""
    look = _with(look, ha="left", va="center", fontsize=SMALL_SIZE, fontweight="bold")
    offset = {"left": (3, 0), "right": (-3, 0), "center": (0, 0)}[look["ha"]]
    axes.annotate(text, (x, y), offset, textcoords="offset points", color=colour, **look)


def logarithmic(axes: Axes, which: str, ticks: int = 6) -> None:
    """Make axes ("x", "y" or "xy") logarithmic with a few ticks; call it after drawing.

    Ticks are at powers of ten, between them where there are fewer than two decades, and at round
    numbers where an axis is too short for two of these.
    """
    for name in which:
        getattr(axes, f"set_{name}scale")("log")
        axis = getattr(axes, f"{name}axis")
        low, high = axis.get_view_interval()
        subs = (1, 2, 5) if high < 100 * low else (1,)
        axis.set_major_locator(LogLocator(subs=subs, numticks=ticks))
        if sum(low <= tick <= high for tick in axis.get_majorticklocs()) < 2:
            axis.set_major_locator(MaxNLocator(4))
        power_labels(axis)


def near_100(axes: Axes, name: str) -> None:
    """Stretch an axis of percentages near 100 by -log10(100.5 - value).

    No value may be above 100.5, where the axis ends.
    """

    def stretch(value: Any) -> Any:
        return -np.log10(np.clip(100.5 - np.asarray(value, dtype=float), 1e-3, None))

    def squeeze(position: Any) -> Any:
        return 100.5 - 10 ** -np.asarray(position, dtype=float)

    getattr(axes, f"set_{name}scale")("function", functions=(stretch, squeeze))


def power_labels(axis: Axis) -> None:
    """Write the ticks of an axis by `power_of_ten`, without minor labels."""
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))


def power_of_ten(value: float) -> str:
    """Format 0 and sizes from 0.01 to below 10,000 in full, others by exponent: `−2·10⁻⁴`."""
    if value == 0 or 0.009 < abs(value) < 9999:
        return f"{value:,g}".replace("-", "−")
    digits, _, exponent = f"{value:.1e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = {"1.0": "", "-1.0": "−"}.get(digits, f"{float(digits):g}·".replace("-", "−"))
    return f"{factor}10{raised}"
