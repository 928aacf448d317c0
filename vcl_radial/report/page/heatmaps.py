"""Heatmaps as tables with coloured cells: text that can be read out, copied and printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import Normalize, to_hex

from vcl_radial.report.figures.heatmap import accuracy_limits
from vcl_radial.report.figures.over_seeds import AccuracyOverSeeds, number
from vcl_radial.report.figures.style import colour_map, text_colour


@dataclass(frozen=True)
class Cell:
    """An accuracy; a task that was not trained yet has no colour."""

    mean: str
    spread: str
    colour: str
    ink: str


@dataclass(frozen=True)
class Heatmap:
    """The rows of a method: the moment, the cells, and the average over the tasks seen."""

    method: str
    rows: list[tuple[str, list[Cell], Cell]]


@dataclass(frozen=True)
class Heatmaps:
    """All methods of a benchmark on one scale of colours, `bar` from its low end to its high."""

    maps: list[Heatmap]
    low: float
    high: float
    bar: str


def heatmaps(summaries: Sequence[AccuracyOverSeeds]) -> Heatmaps:
    """The heatmaps of a benchmark."""
    low, high = accuracy_limits(summaries)
    scale = Normalize(low, high)
    steps = (to_hex(colour_map()(scale(value))) for value in np.linspace(low, high, 11))
    return Heatmaps(
        [_heatmap(s, scale) for s in summaries],
        low,
        high,
        f"linear-gradient(90deg,{','.join(steps)})",
    )


def _heatmap(s: AccuracyOverSeeds, scale: Normalize) -> Heatmap:
    rows = []
    for i in s.rows:
        cells = [
            _cell(s.mean[i - 1, j - 1], s.error[i - 1, j - 1], scale, learnt=j <= i)
            for j in range(1, s.tasks + 1)
        ]
        average = _cell(s.seen_mean[i - 1], s.seen_error[i - 1], scale, learnt=True)
        rows.append(("all" if s.joint else str(i), cells, average))
    return Heatmap(s.method, rows)


def _cell(mean: float, error: float, scale: Normalize, learnt: bool) -> Cell:
    spread = "" if np.isnan(error) else number(error)
    if not learnt or np.isnan(mean):
        return Cell(number(mean), spread, "", "")
    red, green, blue, _ = colour_map()(float(scale(mean)))
    return Cell(number(mean), spread, to_hex((red, green, blue)), text_colour((red, green, blue)))
