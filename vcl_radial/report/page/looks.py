"""How a method looks on the page: a colour for light and dark paper, a marker, dashes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vcl_radial.report.figures.style import line_looks

# The colours of `method_styles`, and what they are on dark paper.
_ON_DARK = {
    "#0072b2": "#4fa8e8",
    "#e69f00": "#f2b632",
    "#009e73": "#2fc79b",
    "#cc79a7": "#e59ac6",
    "#56b4e9": "#8ad0f7",
    "#d55e00": "#ff8a4c",
    "#737373": "#9c9c9c",
    "#a6a6a6": "#c9c9c9",
}
_DASHES = ("", "7 3", "2 3", "7 3 2 3")
# Paths around (0, 0), all of about the same area.
_MARKERS = {
    "o": "M-3.4 0A3.4 3.4 0 1 1 3.4 0A3.4 3.4 0 1 1-3.4 0Z",
    "s": "M-3-3H3V3H-3Z",
    "^": "M0-4.1L3.9 2.9H-3.9Z",
    "v": "M0 4.1L-3.9-2.9H3.9Z",
    "D": "M0-4.2L4.2 0L0 4.2L-4.2 0Z",
    "P": "M-1.4-4H1.4V-1.4H4V1.4H1.4V4H-1.4V1.4H-4V-1.4H-1.4Z",
    "X": "M-3.9-2.4L-2.4-3.9L0-1.5L2.4-3.9L3.9-2.4L1.5 0L3.9 2.4L2.4 3.9L0 1.5L-2.4 3.9"
    "L-3.9 2.4L-1.5 0Z",
    "*": "M0-4.8L1.3-1.6L4.6-1.5L2 .6L2.9 3.9L0 2L-2.9 3.9L-2 .6L-4.6-1.5L-1.3-1.6Z",
}


@dataclass(frozen=True)
class Look:
    """What the style sheet and the drawings need.

    Attributes:
        number: The method's place in the order of the section, from 0.
        colour: As CSS, for both kinds of paper.
        marker: A path around (0, 0).
        dashes: An SVG `stroke-dasharray`.
        level: Whether its line is level, without markers.
    """

    number: int
    colour: str
    marker: str
    dashes: str
    level: bool


def looks(methods: Sequence[str], level: Collection[str] = ()) -> dict[str, Look]:
    """The looks of methods, the same as in the pictures; some of them are level lines."""
    return {
        name: Look(
            number,
            f"light-dark({look.style.colour},{_ON_DARK[look.style.colour]})",
            _MARKERS[look.style.marker],
            "5 4" if name in level else _DASHES[look.dashes],
            name in level,
        )
        for number, (name, look) in enumerate(line_looks(methods).items())
    }
