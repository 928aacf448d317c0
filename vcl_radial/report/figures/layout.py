"""Panels at exact sizes in inches, and text that is known to fit before it is drawn."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from vcl_radial.errors import DataError
from vcl_radial.report.figures.style import QUIET_INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE

LINE_SPACING = 1.3
_POINTS_PER_INCH = 72.0
_SLANT = 35.0  # degrees


@dataclass(frozen=True)
class Grid:
    """Equal panels in lines, measured in inches.

    Attributes:
        panels: The number of panels.
        per_line: The number of panels in a full line.
        width: Width of a panel's axes.
        height: Height of a panel's axes.
        left: Space left of each panel, for its labels.
        above: Space above each panel, for its title.
        below: Space below each panel, for its labels.
        right: Space right of the last column.
        header: Space above the first line, for the title of the figure.
    """

    panels: int
    per_line: int
    width: float
    height: float
    left: float
    above: float
    below: float
    right: float
    header: float

    @property
    def lines(self) -> int:
        """The number of lines."""
        return math.ceil(self.panels / self.per_line)

    @property
    def total_width(self) -> float:
        """Width of the whole figure."""
        return self.per_line * (self.left + self.width) + self.right

    @property
    def total_height(self) -> float:
        """Height of the whole figure."""
        return self.header + self.lines * (self.above + self.height + self.below)

    def figure(self) -> Figure:
        """An empty figure of the right size."""
        return Figure(figsize=(self.total_width, self.total_height))

    def axes(self, figure: Figure, panel: int, height: float | None = None) -> Axes:
        """Adds the axes of one panel, counted from 0 in reading order, perhaps a lower one."""
        line, column = divmod(panel, self.per_line)
        left = self.left + column * (self.left + self.width)
        top = self.header + self.above + line * (self.above + self.height + self.below)
        return self.axes_at(figure, left, top, self.width, height or self.height)

    def axes_at(self, figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
        """Adds axes at a place measured in inches from the upper left corner."""
        W, H = self.total_width, self.total_height
        return figure.add_axes((left / W, 1 - (top + height) / H, width / W, height / H))

    def is_lowest(self, panel: int) -> bool:
        """Whether no panel stands below this one."""
        return panel + self.per_line >= self.panels

    def is_first_of_line(self, panel: int) -> bool:
        """Whether no panel stands left of this one."""
        return panel % self.per_line == 0

    def write_header(self, figure: Figure, title: str, lines: list[str]) -> None:
        """Writes the title and the lines below it, flush left with the first panel."""
        x = self.left / self.total_width
        step = LINE_SPACING / _POINTS_PER_INCH / self.total_height
        figure.text(x, 1.0, title, va="top", fontsize=TITLE_SIZE, fontweight="bold")
        y = 1.0 - 1.15 * step * TITLE_SIZE
        for line in lines:
            figure.text(x, y, line, va="top", fontsize=TEXT_SIZE, color=QUIET_INK)
            y -= step * TEXT_SIZE


def balanced_per_line(panels: int, most: int) -> int:
    """How many panels to put in a line so that the lines are as equally full as can be."""
    return math.ceil(panels / math.ceil(panels / most))


def header_height(lines: int) -> float:
    """Inches that a title and some lines below it take."""
    return LINE_SPACING * (1.15 * TITLE_SIZE + lines * TEXT_SIZE) / _POINTS_PER_INCH


def text_height(lines: int, size: float) -> float:
    """Inches that some lines of text take."""
    return LINE_SPACING * lines * size / _POINTS_PER_INCH


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Inches that a line of text takes."""
    if not text.strip():
        return 0.0
    font = FontProperties(family="DejaVu Sans", weight=weight)
    # An escaped dollar would be a formula to TextPath; any letter of its width will do.
    path = TextPath((0.0, 0.0), text.replace("$", "0"), size=size, prop=font)
    return float(path.get_extents().width) / _POINTS_PER_INCH


def wrap(text: str, inches: float, size: float, weight: str = "normal") -> list[str]:
    """Breaks a text into lines that fit into a width, at spaces and hyphens where it can."""
    width = text_width(text, size, weight)
    if width <= inches:
        return [text]
    for letters in range(math.ceil(1.3 * len(text) * inches / width), 1, -1):
        lines = textwrap.wrap(text, letters)
        if all(text_width(line, size, weight) <= inches for line in lines):
            return lines
    return [text]


def fill(parts: Sequence[str], inches: float, size: float) -> list[str]:
    """Sets phrases into lines of some width, divided by semicolons, broken between phrases."""
    lines: list[str] = []
    for part in parts:
        if lines and text_width(f"{lines[-1]}; {part}", size) <= inches:
            lines[-1] += f"; {part}"
        else:
            lines += wrap(part, inches, size)
    return lines


def task_names(tasks: Sequence[str] | None, T: int) -> list[str]:
    """The names to write on an axis of tasks: the given ones, or the numbers from 1 to T.

    Raises:
        DataError: There are not T names.
    """
    if tasks is None:
        return [str(j) for j in range(1, T + 1)]
    if len(tasks) != T:
        raise DataError(f"names of tasks: the results have {T} tasks, got {len(tasks)} names")
    return list(tasks)


def slant_labels(axes: Axes) -> None:
    """Turns the labels of the horizontal axis, for names that are wider than their column."""
    for label in axes.get_xticklabels():
        label.set(rotation=_SLANT, ha="right", va="center", rotation_mode="anchor")


def label_depth(names: Sequence[str], slanted: bool) -> float:
    """Inches that labels reach below the axes: two lines, or the longest one at a slant."""
    if not slanted:
        return text_height(2, SMALL_SIZE)
    longest = max(text_width(name, SMALL_SIZE) for name in names)
    return math.sin(math.radians(_SLANT)) * longest + text_height(1, SMALL_SIZE)


def label_reach(names: Sequence[str], slanted: bool, column: float) -> float:
    """Inches that the first label reaches beyond the left edge of its column."""
    if not slanted:
        return 0.0
    return math.cos(math.radians(_SLANT)) * text_width(names[0], SMALL_SIZE) - column / 2
