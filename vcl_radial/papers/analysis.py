"""What an analysis is told, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from vcl_radial.report.sections import Claim

__all__ = ["Analysis", "Claim", "Curve", "Setting", "find"]


def _silent(words: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Setting:
    """What an analysis is told.

    Attributes:
        seed: of all random numbers.
        quick: a coarse look in under 20 seconds.
        data_dir: the folder of image data that was named on the command line.
        say: takes a line of progress.
    """

    seed: int = 0
    quick: bool = False
    data_dir: Path | None = None
    say: Callable[[str], None] = field(default=_silent, compare=False)


@dataclass(frozen=True)
class Curve:
    """One line, set of dots or set of bars of a picture: what is drawn is what the CSV holds.

    Attributes:
        panel: the panel it belongs to.
        name: what it shows.
        x: places, or names of places.
        y: values.
        low: lower ends of a band or of error bars, where there are any.
        high: their upper ends.
    """

    panel: str
    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None

    def at(self, x: float | str) -> float:
        """The value at one of the places."""
        return self.y[list(self.x).index(x)]


@dataclass(frozen=True)
class Analysis:
    """An analysis that is done.

    Attributes:
        title: of picture and page.
        source: the published figures.
        shown: what is drawn and how it was computed, paragraph by paragraph.
        settings: names and values of what was chosen: sizes, data, learning rates.
        curves: the numbers behind the picture.
        figure: the picture.
        claims: published beside ours.
        notes: what else there is to see, in numbers.
    """

    title: str
    source: str
    shown: Sequence[str]
    settings: Sequence[tuple[str, str]]
    curves: Sequence[Curve]
    figure: Figure
    claims: Sequence[Claim]
    notes: Sequence[str] = ()


def find(curves: Sequence[Curve], panel: str, name: str) -> Curve:
    """The curve of that panel and name."""
    return next(curve for curve in curves if (curve.panel, curve.name) == (panel, name))
