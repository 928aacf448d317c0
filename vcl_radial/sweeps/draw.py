"""The pictures of a sweep: axes at exact sizes, in the look of the suite."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from vcl_radial.report.figures.layout import Grid, fill, header_height
from vcl_radial.report.figures.style import TEXT_SIZE


def sheet(
    panels: int,
    width: float,
    height: float,
    title: str,
    notes: Sequence[str],
    *,
    left: float = 0.7,
    below: float = 0.5,
    above: float = 0.1,
    right: float = 0.3,
) -> tuple[Figure, Grid]:
    """An empty figure with panels in one line, and a title with notes above them."""
    lines = fill(notes, panels * (left + width) - left, TEXT_SIZE)
    grid = Grid(
        panels=panels,
        per_line=panels,
        width=width,
        height=height,
        left=left,
        above=above,
        below=below,
        right=right,
        header=header_height(len(lines)) + 0.1,
    )
    figure = grid.figure()
    grid.write_header(figure, title, lines)
    return figure, grid
