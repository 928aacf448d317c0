"""The style of all figures, and files that are equal for equal input."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any
from zlib import crc32

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, ListedColormap, to_rgb
from matplotlib.figure import Figure
from PIL import Image

from vcl_radial.files import atomic
from vcl_radial.reporting.figures.fonts import families

INK = "#1a1a1a"
QUIET_INK = "#5c5c5c"
FAINT = "#c8c8c8"
PALE = "#f2f2f2"

TITLE_SIZE = 10.0
TEXT_SIZE = 8.0
SMALL_SIZE = 7.0

_LOOK: dict[Any, Any] = {
    "font.size": TEXT_SIZE,
    "text.color": INK,
    "text.parse_math": False,  # names of methods are not formulas
    "axes.edgecolor": QUIET_INK,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": QUIET_INK,
    "ytick.color": QUIET_INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": SMALL_SIZE,
    "ytick.labelsize": SMALL_SIZE,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "vcl_radial",
}


@dataclass(frozen=True)
class MethodStyle:
    """The look of a method in every figure.

    Attributes:
        colour: Colour of its lines, dots and bars.
        marker: Marker, for prints in grey.
        linestyle: Dashes of its lines.
    """

    colour: str
    marker: str
    linestyle: Any = "-"

    @property
    def look(self) -> dict[str, Any]:
        """Marker and dashes as arguments of matplotlib."""
        return {"marker": self.marker, "linestyle": self.linestyle}


# Okabe & Ito's colours for colour-blind readers, with two greys for their black and yellow, which
# are the colours of text and of too little contrast on white.
_BLUE, _ORANGE, _GREEN, _PINK, _SKY, _RED, _DARK, _LIGHT = _COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#737373", "#a6a6a6"),
)
_MARKERS = "os^DvPX*<>pdhH8"
_DASHED, _DOTTED, _DASH_DOTTED = (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))
_STYLES = [
    MethodStyle(colour, marker, dashes)
    for colour in _COLOURS
    for marker, dashes in zip(_MARKERS, cycle(["-", _DASHED, _DOTTED, _DASH_DOTTED]), strict=False)
]

# Looks of the methods that the pages show often. A family has one colour; Eq. 44, which is drawn on
# and beside radial curves, has a light one of the same hue. References are grey.
_LOOKS = {
    "radial-vcl": MethodStyle(_BLUE, "o"),
    "radial-vcl-eq44": MethodStyle(_SKY, "v"),
    "radial-vcl-proximal": MethodStyle(_BLUE, "^", _DOTTED),
    "radial-vcl-matched-noise": MethodStyle(_BLUE, "D", _DASHED),
    "radial-ensemble": MethodStyle(_BLUE, "P", _DASH_DOTTED),
    "gaussian-vcl": MethodStyle(_ORANGE, "s"),
    "gaussian-vcl-proximal": MethodStyle(_ORANGE, "^", _DOTTED),
    "gaussian-vcl-tweaked": MethodStyle(_ORANGE, "D", _DASHED),
    "gaussian-vcl-truncated": MethodStyle(_ORANGE, "v", _DASHED),
    "low-rank-vcl": MethodStyle(_ORANGE, "P", _DOTTED),
    "curvature-vcl": MethodStyle(_ORANGE, "X", _DASH_DOTTED),
    "rdp-vcl": MethodStyle(_PINK, "D"),
    "rdp-vcl-noise-prior": MethodStyle(_PINK, "o", _DASHED),
    "laplace-diagonal": MethodStyle(_GREEN, "^"),
    "laplace-kronecker": MethodStyle(_GREEN, "v", _DASHED),
    "laplace-last-layer": MethodStyle(_GREEN, "s", _DOTTED),
    "laplace-linearised": MethodStyle(_GREEN, "D", _DASH_DOTTED),
    "ewc": MethodStyle(_PINK, "P"),
    "si": MethodStyle(_RED, "^"),
    "l2": MethodStyle(_RED, "s", _DASHED),
    "replay": MethodStyle(_RED, "D", _DOTTED),
    "deep-ensemble": MethodStyle(_RED, "P"),
    "bayes-linear": MethodStyle(_SKY, "X"),
    "badam": MethodStyle(_RED, "d", _DASHED),
    "vadam": MethodStyle(_GREEN, "o", _DOTTED),
    "mc-dropout": MethodStyle(_PINK, "v", _DASHED),
    "joint": MethodStyle(_DARK, "X"),
    "single-task": MethodStyle(_DARK, "s", _DOTTED),
    "frozen-body": MethodStyle(_DARK, "D", _DASHED),
    "texture": MethodStyle(_DARK, "^"),
    "silhouette": MethodStyle(_DARK, "v", _DASHED),
    "colour": MethodStyle(_DARK, "d", _DOTTED),
    "naive": MethodStyle(_LIGHT, "*"),
    "uniform": MethodStyle(_LIGHT, "o", _DOTTED),
}


def method_styles(methods: Sequence[str]) -> dict[str, MethodStyle]:
    """A look for each method, which depends on its name alone; settings leave it its colour.

    No two of up to 90 methods have the same colour and marker. Two names that the pages do not know
    may claim the same look: then the later one in the alphabet gets another look in that picture.

    Args:
        methods: Names of methods, in the order of the figure.
    """
    styles = {name: _LOOKS[name] for name in methods if name in _LOOKS}
    reserved = {(style.colour, style.marker) for style in _LOOKS.values()}
    free = [style for style in _STYLES if (style.colour, style.marker) not in reserved]
    used: set[int] = set()
    for name in sorted(set(methods) - set(styles)):
        first = crc32(name.encode()) % len(free)
        order = [(first + step) % len(free) for step in range(len(free))]
        if method := _LOOKS.get(name.partition(" (")[0]):  # with settings: in the method's colour
            order.sort(key=lambda number: free[number].colour != method.colour)
        chosen = next((number for number in order if number not in used), first)
        used.add(chosen)
        styles[name] = free[chosen]
    return {name: styles[name] for name in methods}


def styles_in_order(names: Sequence[str]) -> dict[str, MethodStyle]:
    """A look for each of up to eight names: a method's own, and of others the colours in order."""
    looks = cycle(MethodStyle(*look) for look in zip(_COLOURS, _MARKERS, strict=False))
    return {name: _LOOKS.get(name, look) for name, look in zip(names, looks, strict=False)}


def colour_map() -> Colormap:
    """The colour map of heatmaps: perceptually uniform, darker for higher values, also in grey."""
    # This is viridis without its darkest tenth, in which high accuracies look alike.
    return ListedColormap(mpl.colormaps["viridis"](np.arange(255, 25, -1)), name="accuracy")


def text_colour(background: tuple[float, float, float]) -> str:
    """Ink or white, whichever has the higher contrast on a background (WCAG 2.1).

    Args:
        background: sRGB components from 0 to 1.
    """
    below, ink = relative_luminance(background), relative_luminance(to_rgb(INK))
    return INK if (below + 0.05) / (ink + 0.05) > 1.05 / (below + 0.05) else "white"


def relative_luminance(colour: tuple[float, float, float]) -> float:
    """Relative luminance of an sRGB colour, from 0 (black) to 1 (white); WCAG 2.1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@contextmanager
def house_style() -> Iterator[None]:
    """Use the style of the suite inside, independent of the user's matplotlib settings."""
    with mpl.rc_context(), warnings.catch_warnings():
        # `fonts.report_missing` prints one line about all letters.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK | {"font.family": families()})
        yield


def empty() -> Figure:
    """A figure with axes only; drawing it does the slow first steps of a process."""
    with house_style():
        figure = Figure(layout="constrained")
        figure.subplots()
    return figure


ENDINGS = (".png", ".svg")
"""The extensions of the files of a figure."""


def save(figure: Figure, path_without_suffix: Path | str) -> list[Path]:
    """Write a figure as PNG (200 dots per inch) and as SVG.

    A PNG has at most 256 colours if the eye does not see the difference, which saves two thirds of
    the bytes. The same figure gives the same bytes: no dates, no random identifiers. Each file is
    written under a temporary name and then renamed, so that a reader never gets half a picture.

    Args:
        figure: The figure.
        path_without_suffix: The path; `.png` and `.svg` are appended.
    """
    stem = Path(path_without_suffix)
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix, metadata in zip(ENDINGS, ({"Software": None}, {"Date": None}), strict=True):
        buffer = io.BytesIO()
        with house_style():
            FigureCanvasAgg(figure).print_figure(
                buffer,
                format=suffix[1:],
                dpi=200,
                bbox_inches="tight",
                pad_inches=0.06,
                metadata=metadata,
            )
        path = stem.with_name(stem.name + suffix)
        data = buffer.getvalue()
        atomic.write(path, with_few_colours(data) if suffix == ".png" else data)
        paths.append(path)
    return paths


_SEEN = 0.5
"""Threshold of the mean difference of colour components (0 to 255) between a PNG and its palette
version. Photographs are above it; lines and letters on white are far below.
"""


def with_few_colours(png: bytes) -> bytes:
    """Reduce a PNG to a palette of 256 colours, unless that changes it visibly."""
    whole = Image.open(io.BytesIO(png), formats=("PNG",))
    picture = whole.convert("RGB")
    few = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    difference = np.asarray(picture, dtype=int) - np.asarray(few.convert("RGB"), dtype=int)
    if np.abs(difference).mean() > _SEEN:
        return png
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True, dpi=whole.info.get("dpi"))
    return buffer.getvalue()
