"""Draw the mean score of each method as a dot with its standard error, a panel per benchmark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.reporting.figures.drawing import sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.panels import balanced_per_line
from vcl_radial.reporting.figures.style import FAINT, QUIET_INK, SMALL_SIZE, method_styles

_WIDTHS = {1: 4.2, 2: 2.6}
_WIDTH = 1.9  # of a panel among three or more


def method_dots(
    panels: Mapping[str, Mapping[str, tuple[float, float]]],
    methods: Sequence[str],
    title: str,
    unit: str,
) -> Figure:
    """Draw a dot per method in each panel; a method without a score leaves its line empty.

    Args:
        panels: by title of the panel, mean and standard error by method.
        methods: the methods, the best first.
        title: title of the figure.
        unit: label of the axis of scores, which goes from 0 to 100.
    """
    upwards, styles = list(reversed(methods)), method_styles(methods)
    per_line = balanced_per_line(len(panels), 3)
    with sheet(
        title,
        ["mean and standard error over seeds"],
        [*panels],
        per_line=per_line,
        width=_WIDTHS.get(per_line, _WIDTH),
        height=0.2 * len(methods),
        grid="x",
    ) as (figure, all_axes):
        for index, (axes, scores) in enumerate(zip(all_axes, panels.values(), strict=True)):
            for line, method in enumerate(upwards):
                if method in scores and not math.isnan(scores[method][0]):
                    style = styles[method]
                    look = {"color": style.colour, "marker": style.marker, "markersize": 4.5}
                    _dot(axes, line, *scores[method], look)
            names = [*map(method_label, upwards)] if index % per_line == 0 else []
            axes.set_yticks(range(len(upwards)), names or [""] * len(upwards))
            axes.set(xlim=(0, 105 if per_line == 1 else 120), ylim=(-0.7, len(upwards) - 0.3))
            axes.set_xticks(range(0, 101, 20 if per_line < 3 else 50))
            if index + per_line >= len(panels):
                axes.set_xlabel(unit)
    return figure


def _dot(axes: Axes, line: int, mean: float, error: float, look: dict[str, object]) -> None:
    """Draw the dot of a method with its number beside it."""
    axes.plot([0, mean], [line, line], color=FAINT, linewidth=0.8, zorder=1)
    axes.errorbar(mean, line, xerr=error, **look)  # type: ignore[arg-type]
    axes.annotate(
        f"{mean:.1f}",
        (mean + (0.0 if math.isnan(error) else error), line),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize=SMALL_SIZE,
        color=QUIET_INK,
    )
