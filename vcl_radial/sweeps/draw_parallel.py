"""Parallel coordinates: every configuration as a line through the values of its keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vcl_radial.report.figures.layout import text_width
from vcl_radial.report.figures.style import (
    FAINT,
    INK,
    QUIET_INK,
    SMALL_SIZE,
    TEXT_SIZE,
    colour_map,
    house_style,
)
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.draw import sheet
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.results import Searched, Tried
from vcl_radial.sweeps.space import Choices, Range


def parallel(
    searched: Searched, keys: Mapping[str, Choices | Range], words: str, direction: Direction
) -> Figure:
    """The trials of one method on one benchmark; the better a line's score, the darker it is.

    A key that a configuration does not have breaks its line. Trials without a score are dashed.

    Args:
        searched: what was tried.
        keys: what was searched.
        words: what the score, the last axis, is called.
        direction: "maximize" or "minimize".

    Returns:
        The figure.
    """
    shown = [key for key in keys if any(key in trial.parameters for trial in searched.trials)]
    scores = [trial.score for trial in searched.trials if trial.score is not None]
    scale = Normalize(min(scores, default=0.0), max(scores, default=1.0))
    pitch = max([0.95, *(text_width(key, SMALL_SIZE) + 0.2 for key in shown)])
    best = searched.best(direction)
    notes = [f"{len(scores)} configurations with a score"]
    if len(scores) < len(searched.trials):
        notes.append(f"dashed: {len(searched.trials) - len(scores)} given up, diverged or failed")
    if best is not None:
        notes.append(f"outlined: the best, trial {best.number}")
    with house_style():
        figure, grid = sheet(
            1,
            pitch * len(shown),
            2.4,
            f"{searched.benchmark}, {searched.method}",
            notes,
            above=0.3,
            below=0.2,
            right=1.0,
        )
        axes = grid.axes(figure, 0)
        for trial in sorted(searched.trials, key=lambda t: _rank(t, direction)):
            _line(axes, trial, shown, keys, scale, direction, trial is best)
        for place, key in enumerate(shown):
            _axis(axes, place, key, keys[key])
        _score_axis(axes, len(shown), scale, words)
        axes.set_xlim(-0.15, len(shown) + 0.05)
        axes.set_ylim(-0.05, 1.05)
        axes.axis("off")
    return figure


def _rank(trial: Tried, direction: Direction) -> float:
    """The best lines are drawn last, on top."""
    if trial.score is None:
        return -math.inf
    return trial.score if direction == "maximize" else -trial.score


def height(what: Choices | Range, value: object) -> float:
    """Where a value stands on its axis, from 0 to 1."""
    if isinstance(what, Choices):
        last = len(what.choices) - 1
        return what.choices.index(value) / last if last else 0.5  # type: ignore[arg-type]
    assert isinstance(value, (int, float))
    if what.log:
        return math.log(value / what.low) / math.log(what.high / what.low)
    return (value - what.low) / (what.high - what.low)


def _line(
    axes: Axes,
    trial: Tried,
    shown: Sequence[str],
    keys: Mapping[str, Choices | Range],
    scale: Normalize,
    direction: Direction,
    is_best: bool,
) -> None:
    values = trial.parameters
    # Lines through one choice lie side by side, in an order of their own.
    aside = 0.05 * ((trial.number * 0.618) % 1.0 - 0.5)
    y = [
        height(keys[key], values[key]) + aside * isinstance(keys[key], Choices)
        if key in values
        else math.nan
        for key in shown
    ]
    if trial.score is None:
        axes.plot(range(len(y)), y, color=FAINT, linewidth=0.7, linestyle=(0, (3, 2)))
        return
    place = float(scale(trial.score)) if scale.vmax != scale.vmin else 1.0
    colour = colour_map()(place if direction == "maximize" else 1.0 - place)
    x = [*range(len(y)), len(y)]
    if is_best:
        axes.plot(x, [*y, place], color=INK, linewidth=3.2, solid_joinstyle="round")
    axes.plot(x, [*y, place], color=colour, linewidth=1.6 if is_best else 0.9, marker=".", ms=3)


def _axis(axes: Axes, place: int, key: str, what: Choices | Range) -> None:
    axes.plot([place, place], [0, 1], color=QUIET_INK, linewidth=0.7, zorder=3)
    axes.text(place, 1.09, key, ha="center", va="bottom", fontsize=SMALL_SIZE, fontweight="bold")
    if isinstance(what, Choices):
        ticks = [(height(what, choice), cell(choice)) for choice in what.choices]
    else:
        ticks = [(0.0, f"{what.low:g}"), (1.0, f"{what.high:g}")]
        middle = (what.low * what.high) ** 0.5 if what.log else (what.low + what.high) / 2
        if isinstance(what.low, int) and isinstance(what.high, int):
            middle = round(middle)
        if what.low < middle < what.high:
            ticks.insert(1, (height(what, middle), f"{middle:.3g}"))
    _label(axes, place, ticks, "right", -3.0)


def _score_axis(axes: Axes, place: int, scale: Normalize, words: str) -> None:
    axes.plot([place, place], [0, 1], color=QUIET_INK, linewidth=0.7, zorder=3)
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 0.0)
    ticks = [(i / 4, f"{low + i / 4 * (high - low):.4g}") for i in range(5)]
    _label(axes, place, ticks if high > low else [(1.0, f"{high:.4g}")], "left", 4.0)
    axes.annotate(
        words,
        (place, 0.5),
        (30.0, 0.0),
        textcoords="offset points",
        rotation=90,
        ha="left",
        va="center",
        fontsize=TEXT_SIZE,
    )


def _label(
    axes: Axes, place: int, ticks: Sequence[tuple[float, str]], side: str, offset: float
) -> None:
    for y, words in ticks:
        axes.annotate(
            words,
            (place, y),
            (offset, 0.0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=SMALL_SIZE - 0.5,
            zorder=4,
            bbox={
                "boxstyle": "square,pad=0.05",
                "facecolor": "white",
                "linewidth": 0,
                "alpha": 0.8,
            },
        )
