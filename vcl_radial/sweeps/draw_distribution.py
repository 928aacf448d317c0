"""How scores are distributed over configurations: the view of the AISTATS paper's Fig. 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vcl_radial.errors import UserError
from vcl_radial.report.figures.layout import text_width
from vcl_radial.report.figures.style import (
    FAINT,
    INK,
    QUIET_INK,
    SMALL_SIZE,
    house_style,
    method_styles,
)
from vcl_radial.sweeps.draw import sheet
from vcl_radial.sweeps.results import Searched


@dataclass(frozen=True)
class Levels:
    """What counts as having learnt nothing, and as good.

    Attributes:
        nothing: below it a configuration has learnt nothing.
        good: from it on a configuration is good.
        words: where they come from.
    """

    nothing: float
    good: float
    words: str


@dataclass(frozen=True)
class Shares:
    """What became of the configurations of a method, in per cent of those that were tried.

    A diverged trial has learnt nothing; those given up or failed have no score and do not count.
    """

    tried: int
    nothing: float
    good: float


def levels(
    searched: Sequence[Searched], nothing: float | None = None, good: float | None = None
) -> Levels | None:
    """The levels for a score: a tenth and nine tenths of the way from chance to the best.

    Chance is the mean score without training, the best that of all methods.

    Args:
        searched: the methods on one benchmark.
        nothing: instead, in per cent.
        good: instead, in per cent.

    Returns:
        None where no trial finished.

    Raises:
        UserError: one was given that does not leave `nothing` below `good`.
    """
    given = nothing is not None or good is not None
    chances = [s.chance for s in searched if s.chance is not None]
    scores = [t.score for s in searched for t in s.trials if t.score is not None]
    if not chances or not scores:
        return None
    chance, best = float(np.mean(chances)), max(scores)
    words = []
    if nothing is None:
        nothing = chance + 0.1 * (best - chance)
        words.append(f"nothing learnt: below {nothing:.1f}, a tenth of the way from chance to best")
    else:
        words.append(f"nothing learnt: below {nothing:g}")
    if good is None:
        good = chance + 0.9 * (best - chance)
        words.append(f"good: from {good:.1f}, nine tenths of that way")
    else:
        words.append(f"good: from {good:g}")
    if given and not nothing < good:
        raise UserError(
            f"--nothing must be less than --good, but they are {nothing:g} and {good:g}; "
            "give both, in this order"
        )
    return Levels(nothing, good, "; ".join(words))


def shares(searched: Searched, level: Levels) -> Shares:
    """How many configurations of a method learn nothing, and how many are good."""
    scores = np.array(counted(searched))
    if len(scores) == 0:
        return Shares(0, 0.0, 0.0)
    nothing = 100.0 * float(np.mean(~(scores >= level.nothing)))
    return Shares(len(scores), nothing, 100.0 * float(np.mean(scores >= level.good)))


def counted(searched: Searched) -> list[float]:
    """The scores that count; nan for a diverged trial, which reaches none."""
    return [
        t.score if t.score is not None else float("nan")
        for t in searched.trials
        if t.outcome in ("finished", "diverged")
    ]


def distribution(
    searched: Sequence[Searched],
    words: str,
    name: str,
    level: Levels | None,
    *,
    higher_is_better: bool = True,
) -> Figure:
    """How many configurations reach a score, method by method; and the shares of the levels.

    Args:
        searched: the methods on one benchmark.
        words: what the score is called.
        name: the title.
        level: None to draw no levels.
        higher_is_better: else a configuration reaches what it is not above.

    Returns:
        The figure.
    """
    styles = method_styles([s.method for s in searched])
    by_method = {s.method: np.array(counted(s)) for s in searched if counted(s)}
    notes = [f"{len(scores)} configurations of {method}" for method, scores in by_method.items()]
    if level is not None:
        notes += level.words.split("; ")
    with house_style():
        panels = 1 if level is None else 2
        longest = max((text_width(method, SMALL_SIZE) for method in by_method), default=0.0)
        left = max(0.7, longest + 0.25)
        figure, grid = sheet(panels, 3.2, 2.3, name, notes, left=left)
        axes = grid.axes(figure, 0)
        colours = {method: style.colour for method, style in styles.items()}
        _curves(axes, by_method, colours, level, higher_is_better)
        axes.set_xlabel(words)
        axes.set_ylabel("configurations that reach it (%)")
        if level is not None:
            table = {s.method: shares(s, level) for s in searched if s.method in by_method}
            _bars(grid.axes(figure, 1), table)
    return figure


def _curves(
    axes: Axes,
    by_method: Mapping[str, np.ndarray],
    colours: Mapping[str, str],
    level: Levels | None,
    higher_is_better: bool,
) -> None:
    finite = np.concatenate([scores[np.isfinite(scores)] for scores in by_method.values()])
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    low, high = low - margin, high + margin
    for method, scores in by_method.items():
        reached = np.sort(scores[np.isfinite(scores)])
        count = np.arange(len(reached) + 1)
        share = 100.0 * (count[::-1] if higher_is_better else count) / len(scores)
        x = np.concatenate([[low], reached, [high]])
        y = np.concatenate([share, share[-1:]])
        axes.step(x, y, where="post", color=colours[method], linewidth=1.6, label=method)
    if level is not None:
        for value, words in ((level.nothing, "nothing learnt"), (level.good, "good")):
            if low < value < high:
                axes.axvline(value, color=QUIET_INK, linestyle=(0, (1, 1.5)), linewidth=0.9)
                side = "left" if words == "good" and value > low + 0.5 * (high - low) else "right"
                axes.annotate(
                    words,
                    (value, 104.0),
                    (-3.0 if side == "left" else 3.0, 0.0),
                    textcoords="offset points",
                    ha="right" if side == "left" else "left",
                    va="center",
                    fontsize=SMALL_SIZE,
                    color=QUIET_INK,
                )
    axes.set_xlim(low, high)
    axes.set_ylim(0.0, 108.0)
    axes.set_yticks(range(0, 101, 20))
    axes.spines["left"].set_bounds(0.0, 100.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    axes.legend(
        loc="best",
        bbox_to_anchor=(0.0, 0.0, 1.0, 100 / 108),  # below the words for the levels
        facecolor="white",
        edgecolor="none",
        framealpha=1.0,
        fontsize=SMALL_SIZE,
        borderaxespad=0.2,
    )


_PARTS = (("nothing learnt", "#5c5c5c"), ("between", "#c8c8c8"), ("good", "#009e73"))


def _bars(axes: Axes, table: Mapping[str, Shares]) -> None:
    for place, share in enumerate(table.values()):
        widths = (share.nothing, 100.0 - share.nothing - share.good, share.good)
        start = 0.0
        for (part, colour), width in zip(_PARTS, widths, strict=True):
            label = part if place == 0 else None
            axes.barh(place, width, left=start, height=0.55, color=colour, label=label)
            if width >= 5.0:
                axes.text(
                    start + width / 2,
                    place,
                    f"{width:.0f} %",
                    ha="center",
                    va="center_baseline",
                    fontsize=SMALL_SIZE,
                    color="white" if part != "between" else INK,
                )
            start += width
    axes.set_yticks(range(len(table)), list(table))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(table) - 0.4, -0.75 - 0.1 * len(table))
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("configurations (%)")
    axes.spines["left"].set_visible(False)
    axes.legend(
        loc="upper left",
        ncols=3,
        frameon=False,
        fontsize=SMALL_SIZE,
        handlelength=1.0,
        columnspacing=1.2,
        borderaxespad=0.0,
    )
