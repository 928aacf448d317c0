"""Lay out panels of a size in inches, with a header, in matplotlib's constrained layout."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from vcl_radial.errors import DataError
from vcl_radial.reporting.figures.fonts import families, letters, report_missing
from vcl_radial.reporting.figures.style import QUIET_INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE

_LINE = 1.3 / 72.0
"""Height in inches of a line of text per point of its size."""

_LETTER = 0.58
"""Width of a letter over the size of the text, slightly more than average."""

_NARROWEST = 3.4
"""Smallest width of a header in inches."""

_NARROWEST_COLUMN = 0.16
"""Width in inches of a column with a name."""

_MOST_LETTERS = 40
"""Largest number of letters of a name in a figure."""


def panels(count: int, per_line: int) -> tuple[Figure, list[Axes]]:
    """Make a figure with panels in lines; `finish` sets its size."""
    figure = Figure(
        layout=ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.05, wspace=0.02, hspace=0.02)
    )
    grid = figure.subplots(math.ceil(count / per_line), per_line, squeeze=False)
    for axes in grid.flat[count:]:
        axes.remove()
    return figure, list(grid.flat[:count])


def finish(
    figure: Figure,
    size: tuple[float, float],
    title: str,
    notes: Sequence[str],
    key: Sequence[Artist] = (),
) -> None:
    """Set the size of the panels of a figure, and write its header; call it after drawing.

    Args:
        figure: a figure of `panels`.
        size: width and height of a panel's axes, in inches.
        title: title of the figure.
        notes: phrases below the title.
        key: labelled artists for a legend of all panels, in lines above them.
    """
    axes = figure.axes[0]
    spec = axes.get_subplotspec()
    lines, columns = spec.get_gridspec().get_geometry() if spec else (1, 1)
    figure.set_size_inches(columns * (size[0] + 0.4), lines * (size[1] + 0.4))
    engine = figure.get_layout_engine()
    assert engine is not None
    for _ in range(2):  # the space for labels depends on the size of the figure
        with warnings.catch_warnings():  # the first size may be too small for the labels
            warnings.filterwarnings("ignore", "constrained_layout not applied")
            engine.execute(figure)
        box = axes.get_position(original=True)
        width, height = (float(inches) for inches in figure.get_size_inches())
        width += columns * (size[0] - box.width * width)
        height += lines * (size[1] - box.height * height)
        figure.set_size_inches(width, height)
    engine.execute(figure)
    figure.set_layout_engine("none")
    for legend in figure.legends:  # otherwise it would move when the file is cropped
        legend.set_bbox_to_anchor((0.0, 0.0, 1.0, 1.0), figure.transSubfigure)
    _header(figure, width, height, title, notes, key)
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    report_missing((text.get_text() for text in texts), families())


def _header(
    figure: Figure,
    width: float,
    height: float,
    title: str,
    notes: Sequence[str],
    key: Sequence[Artist],
) -> None:
    """Write the header above the panels; files are cropped, so the figure need not grow."""
    y = 1.0
    if key:
        longest = max(letters(str(artist.get_label())) for artist in key)
        per_line = max(1, int(max(width, _NARROWEST) / (0.5 + longest * TEXT_SIZE * _LETTER / 72)))
        legend = figure.legend(
            handles=list(key),
            loc="lower left",
            bbox_to_anchor=(0.0, y),
            ncols=min(per_line, len(key)),
            frameon=False,
            borderpad=0.3,
            borderaxespad=0,
            handlelength=2.8,
            fontsize=TEXT_SIZE,
        )
        legend.set_in_layout(True)
        y += math.ceil(len(key) / per_line) * 1.15 * TEXT_SIZE * _LINE / height + 0.05 / height
    text = wrap("; ".join(notes), max(width, _NARROWEST), TEXT_SIZE)
    if text:
        figure.text(
            0.0,
            y,
            "\n".join(text),
            va="bottom",
            fontsize=TEXT_SIZE,
            color=QUIET_INK,
            linespacing=1.3,
        )
        y += (len(text) * TEXT_SIZE * _LINE + 0.04) / height
    lines = wrap(title, max(width, _NARROWEST), TITLE_SIZE)
    figure.text(0.0, y, "\n".join(lines), va="bottom", fontsize=TITLE_SIZE, fontweight="bold")


def balanced_per_line(count: int, most: int) -> int:
    """The number of panels per line that fills the lines most equally."""
    return math.ceil(count / math.ceil(count / most))


def wrap(text: str, inches: float, size: float) -> list[str]:
    """Break a text into lines that fit into a width, if possible at spaces and hyphens."""
    room = inches * 72.0 / (_LETTER * size) * len(text) / (letters(text) or 1.0)
    return textwrap.wrap(text, max(4, int(room)))


def panel_title(axes: Axes, text: str, inches: float) -> None:
    """Write the title of a panel of a width in inches."""
    lines = wrap(text, inches, 1.12 * TEXT_SIZE)  # bold letters are wider
    axes.set_title("\n".join(lines), fontsize=TEXT_SIZE, fontweight="bold", loc="left", pad=4)


def side_legend(axes: Axes, methods: Sequence[str]) -> None:
    """Draw the legend of a panel to the right of it, with `methods` in order."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    shown = [method for method in methods if method in handles]
    axes.legend(
        [handles[method] for method in shown],
        ["\n".join(wrap(method, 2.2, SMALL_SIZE)) for method in shown],
        loc="upper left",
        bbox_to_anchor=(1.03, 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize=SMALL_SIZE,
        handlelength=2.6,
    )


def task_names(tasks: Sequence[str] | None, T: int) -> list[str]:
    """The labels of an axis of tasks: shortened names, or numbers from 1.

    Raises:
        DataError: There are not T names.
    """
    if tasks is None:
        return [str(j) for j in range(1, T + 1)]
    if len(tasks) != T:
        raise DataError(f"names of tasks: the results have {T} tasks, got {len(tasks)} names")
    return [shortened(name) for name in tasks]


def shortened(name: str) -> str:
    """A name, with an ellipsis in the middle if it is longer than 40 characters."""
    return name if len(name) <= _MOST_LETTERS else f"{name[:19]}…{name[-20:]}"


def label_columns(axes: Axes, places: Sequence[float], names: Sequence[str], width: float) -> None:
    """Write names below columns of a width in inches, at a slant if a name is wider.

    If columns are narrower than a line of text, only every k-th column and the last one have a
    name.
    """
    step = math.ceil(_NARROWEST_COLUMN / width)
    places, names = ([*items[:-step:step], items[-1]] for items in (list(places), list(names)))
    slanted = any(letters(n) * SMALL_SIZE * _LETTER / 72.0 > width for n in names if "\n" not in n)
    if slanted:
        names = [name.replace("\n", " ") for name in names]
    axes.set_xticks(places, names)
    if slanted:
        for label in axes.get_xticklabels():
            label.set(rotation=35.0, ha="right", va="center", rotation_mode="anchor")
