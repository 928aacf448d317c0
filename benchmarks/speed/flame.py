"""A flame graph: a box for each function, as wide as its share, on those that call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from benchmarks.speed.setting import Row
from vcl_radial.reporting.figures.drawing import key_line, sheet
from vcl_radial.reporting.figures.style import FAINT, SMALL_SIZE, method_styles

STACK = "stack"
"""The metric of rows that are only drawn: the share of a stack, whose frames are the variant."""

_WIDTH, _LINE = 10.0, 0.17
_LETTER = 0.55 * SMALL_SIZE / 72
"""Inches of a letter."""

_PACKAGES = ("vcl_radial", "torch", "avalanche", "matplotlib")
_OTHERS = "others"
_CENTRE: dict[str, Any] = {"ha": "center", "va": "center"}


class Flame(NamedTuple):
    """The flame graph of a section."""

    name: str
    """of the files"""
    title: str

    def drawn(self, rows: Sequence[Row]) -> list[Row]:
        """Those of a section's rows that it shows."""
        return [r for r in rows if r.metric == STACK]

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The picture of a section's rows, callers before what they call."""
        shares = {tuple(r.variant.split(";")): r.median for r in self.drawn(rows)}
        colours = {name: style.colour for name, style in method_styles(_PACKAGES).items()}
        colours[_OTHERS] = FAINT
        places: dict[tuple[str, ...], float] = {(): 0.0}
        depth = max(map(len, shares))
        key = [key_line(name, colour, linewidth=5) for name, colour in colours.items()]
        with sheet(
            self.title,
            [],
            [""],
            per_line=1,
            width=_WIDTH,
            height=_LINE * depth,
            key=key,
        ) as (figure, (axes,)):
            for stack, share in shares.items():
                left = places[stack[:-1]]
                # The next one beside it begins where it ends, and what it calls where it begins.
                places[stack[:-1]], places[stack] = left + share, left
                box = Rectangle(
                    (left, len(stack) - 1),
                    share,
                    1,
                    facecolor=colours[_package(stack[-1])],
                    alpha=0.55,
                    edgecolor="white",
                    linewidth=0.6,
                )
                axes.add_patch(box)
                text = _fitting(stack[-1], share / 100 * _WIDTH)
                axes.text(left + share / 2, len(stack) - 0.5, text, size=SMALL_SIZE, **_CENTRE)
            axes.set(xlim=(0, 100), ylim=(0, depth), yticks=[], xlabel="per cent of the time")
            axes.spines["left"].set_visible(False)
            axes.grid(visible=False)
        return figure


def _package(frame: str) -> str:
    """The package that a frame such as "work (package/file)" is of."""
    package = frame.rpartition(" (")[2].partition("/")[0]
    return package if package in _PACKAGES else _OTHERS


def _fitting(frame: str, inches: float) -> str:
    """The frame with its file, or without it, or nothing: what has room."""
    name = frame.rpartition(" (")[0]
    fitting = (text for text in (frame, name) if (len(text) + 1) * _LETTER <= inches)
    return next(fitting, "")
