"""The pictures of a sweep: scores over configurations, their cost, and which keys matter."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vcl_radial.reporting.figures.drawing import legend, logarithmic
from vcl_radial.reporting.figures.style import (
    DASHES,
    FAINT,
    INK,
    QUIET_INK,
    SMALL_SIZE,
    LineLook,
    house_style,
    line_looks,
    method_styles,
)
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.importance import study_of
from vcl_radial.sweeps.levels import Levels, Shares, counted, shares
from vcl_radial.sweeps.results import SearchResult, TrialResult
from vcl_radial.sweeps.space import Parameters, Searchable

_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")
_PARTS = (("nothing learnt", "#5c5c5c"), ("between", "#c8c8c8"), ("good", "#009e73"))


def distribution(
    searched: Sequence[SearchResult],
    label: str,
    level: Levels | None,
    *,
    higher_is_better: bool = True,
) -> Figure:
    """Draw the share of configurations that reach a score, per method, and the shares of levels.

    The figure follows Farquhar, Osborne and Gal 2020, Fig. 4.

    Args:
        searched: results of the methods on one benchmark.
        label: the name of the score.
        level: levels to draw, or None.
        higher_is_better: if false, a configuration reaches every score that it is not above.
    """
    scored = [one for one in searched if counted(one)]
    with house_style():
        figure = Figure(figsize=(4.0 if level is None else 7.6, 2.9), layout="constrained")
        axes = figure.subplots(1, 1 if level is None else 2, squeeze=False)[0]
        _curves(axes[0], scored, level, higher_is_better)
        axes[0].set_xlabel(label)
        axes[0].set_ylabel("configurations that reach it (%)")
        if level is not None:
            _bars(axes[1], {one.method: shares(one, level) for one in scored})
    return figure


def cost_against_score(
    searched: Sequence[SearchResult], label: str, direction: Direction
) -> Figure:
    """Draw every configuration by the seconds of one run (training and evaluation) and its score.

    The line of a method joins the configurations that are better than all cheaper ones.

    Args:
        searched: results of the methods on one benchmark.
        label: the name of the score.
        direction: "maximize" or "minimize".
    """
    styles = method_styles([one.method for one in searched])
    with house_style():
        figure = Figure(figsize=(4.8, 3.0), layout="constrained")
        axes = figure.subplots()
        for one in searched:
            points = [(t.seconds, t.score) for t in one.trials if t.score is not None and t.seconds]
            if points:
                x, y = np.array(sorted(points)).T
                style = styles[one.method]
                axes.plot(x, y, style.marker, color=style.colour, mec="white", label=one.method)
                bests = (np.maximum if direction == "maximize" else np.minimum).accumulate(y)
                axes.step(x, bests, where="post", color=style.colour, linewidth=1.2, zorder=1)
        logarithmic(axes, "x")
        axes.set_xlabel("seconds of a run, training and evaluation")
        axes.set_ylabel(label)
        axes.grid(color=FAINT, linewidth=0.4)
        axes.legend(loc="best", frameon=False, fontsize=SMALL_SIZE)
    return figure


def parallel(
    search: SearchResult, keys: Mapping[str, Searchable], label: str, direction: Direction
) -> Figure:
    """Draw Optuna's parallel coordinates of the configurations of one method that have a score.

    A configuration without a key has the value `None` there.

    Args:
        search: results of one method.
        keys: the searched keys.
        label: the name of the score.
        direction: "maximize" or "minimize".
    """
    from matplotlib import pyplot
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    with house_style(), mpl.rc_context({"axes.spines.right": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns that the plot is experimental
        axes = plot_parallel_coordinate(study_of(search, keys, direction), target_name=label)
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.set_size_inches(1.6 + 1.1 * len(keys), 3.4)
        axes.set_title("")
        for shown in figure.axes:
            if shown.get_yscale() == "log":
                logarithmic(shown, "y")
            for lines in shown.collections:
                if isinstance(lines, LineCollection):
                    lines.set_cmap(_visible(lines.get_cmap()))
        pyplot.close(figure)
    return figure


def _visible(colours: Colormap) -> Colormap:
    """A colour map without the white end, which is invisible on white."""
    white_first = sum(colours(0.0)[:3]) > sum(colours(1.0)[:3])
    ends = (0.25, 1.0) if white_first else (0.0, 0.75)
    return ListedColormap(colours(np.linspace(*ends, 256)))


def along_numbers(search: SearchResult, label: str) -> Figure:
    """Draw the score along each number of a grid, one line per combination of all other keys.

    A combination in which no number varies is a horizontal line in all panels.

    Args:
        search: results of one method, with a number that varies.
        label: the name of the score.
    """
    scored, panels = _scored(search), numbers_of(search)
    drawn = {trial.number for lines in panels.values() for line in lines.values() for trial in line}
    # Trials that differ only in the key of a panel are on one of its lines.
    rest = [trial for trial in scored if trial.number not in drawn]
    levels = {_named(trial.parameters, panels): trial.score for trial in rest}
    looks = line_looks([*dict.fromkeys(chain(*panels.values())), *levels])
    entries: dict[str, Artist] = {}
    with house_style():
        height = 2.8 + 0.17 * len(looks) / len(panels)
        figure = Figure(figsize=(1.6 + 3.4 * len(panels), height), layout="constrained")
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (key, lines) in zip(row, panels.items(), strict=True):
            for name, line in lines.items():
                entries[name] = _line(axes, key, line, looks[name])
            for name, score in levels.items():
                colour = looks[name].style.colour
                entries[name] = axes.axhline(score or 0.0, color=colour, linestyle=DASHES[2])
            _number_axis(axes, {float(trial.parameters[key]) for trial in chain(*lines.values())})
            axes.set_xlabel(key)
            axes.grid(axis="y", color=FAINT, linewidth=0.4)
        row[0].set_ylabel(label)
        figure.legend(
            entries.values(),
            entries,
            loc="outside lower left",
            ncols=len(panels),
            frameon=False,
            fontsize=SMALL_SIZE,
        )
    return figure


def _line(axes: Axes, key: str, line: Sequence[TrialResult], look: LineLook) -> Artist:
    bars = axes.errorbar(
        [trial.parameters[key] for trial in line],
        [trial.score or 0.0 for trial in line],
        [trial.standard_error or 0.0 for trial in line],
        color=look.style.colour,
        marker=look.style.marker,
        linestyle=DASHES[look.dashes],
    )
    line_of_bars: Artist = bars[0]
    return line_of_bars


def _number_axis(axes: Axes, values: Collection[float]) -> None:
    """Set ticks at the values; use a logarithmic axis if they are far apart."""
    if min(values) > 0 and max(values) > 8 * min(values):
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted(values)))
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.xaxis.set_minor_locator(NullLocator())


Line = list[TrialResult]
"""Trials that differ in one number, sorted by it."""


def numbers_of(search: SearchResult) -> dict[str, dict[str, Line]]:
    """For each number that varies, the lines along it, by the values of all other keys."""
    scored = _scored(search)
    keys = dict.fromkeys(key for trial in scored for key in trial.parameters)
    return {key: lines for key in keys if (lines := _lines_along(key, scored))}


def _scored(search: SearchResult) -> list[TrialResult]:
    trials = sorted(search.trials, key=lambda trial: trial.number)
    return [trial for trial in trials if trial.score is not None]


def _lines_along(key: str, scored: Sequence[TrialResult]) -> dict[str, Line]:
    lines: dict[str, Line] = {}
    for trial in scored:
        value = trial.parameters.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            lines.setdefault(_named(trial.parameters, [key]), []).append(trial)
    return {
        label: sorted(line, key=lambda trial: float(trial.parameters[key]))
        for label, line in lines.items()
        if len(line) > 1
    }


def _named(parameters: Parameters, without: Collection[str]) -> str:
    """The label of a configuration without some of its keys."""
    kept = {k.rpartition(".")[2]: value for k, value in parameters.items() if k not in without}
    return ", ".join(f"{name} = {cell(value)}" for name, value in kept.items())


def importance(table: pd.DataFrame) -> Figure:
    """Draw a bar per method for fANOVA, and a mark for PED-ANOVA.

    Args:
        table: a table of `importances` with at least one row.
    """
    methods, keys = (list(dict.fromkeys(table[column])) for column in ("method", "key"))
    styles = method_styles(methods)
    thickness = 0.8 / len(methods)
    with house_style():
        height = 0.8 + len(keys) * max(0.22, 0.13 * len(methods))
        figure = Figure(figsize=(5.0, height), layout="constrained")
        axes = figure.subplots()
        for number, method in enumerate(methods):
            rows = table[table["method"] == method].set_index("key")
            y = [keys.index(key) - 0.4 + (number + 0.5) * thickness for key in rows.index]
            widths = 100 * rows["fanova"].fillna(0.0)
            axes.barh(y, widths, 0.9 * thickness, color=styles[method].colour, label=method)
            shares_of_best = 100 * rows["ped_anova"]
            axes.plot(shares_of_best, y, "d", ms=3.5, mfc="white", mec=INK, mew=0.8, clip_on=False)
        axes.set_yticks(range(len(keys)), keys)
        axes.set_ylim(len(keys) - 0.5, -0.5)
        axes.set_xlim(left=0.0)
        axes.set_xlabel("importance (%); bars: fANOVA, marks: PED-ANOVA")
        axes.grid(axis="x", color=FAINT, linewidth=0.4)
        figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=SMALL_SIZE)
    return figure


def _curves(
    axes: Axes, scored: Sequence[SearchResult], level: Levels | None, higher_is_better: bool
) -> None:
    styles = method_styles([one.method for one in scored])
    by_method = {one.method: np.array(counted(one)) for one in scored}
    finite = np.concatenate([scores[np.isfinite(scores)] for scores in by_method.values()])
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    margin = 0.03 * (high - low) or 1.0
    for method, scores in by_method.items():
        reached = np.sort(scores[np.isfinite(scores)])
        count = np.arange(len(reached) + 1)
        share = 100.0 * (count[::-1] if higher_is_better else count) / len(scores)
        x = np.concatenate([[low - margin], reached, [high + margin]])
        y = np.concatenate([share, share[-1:]])
        label = f"{method} ({len(scores)})"
        axes.step(x, y, where="post", color=styles[method].colour, linewidth=1.6, label=label)
    lines = {} if level is None else {"nothing learnt": level.nothing, "good": level.good}
    for name, value in lines.items():
        if low < value < high:
            axes.axvline(value, color=QUIET_INK, linestyle=(0, (1, 1.5)), linewidth=0.9)
            axes.text(value, 103.0, name, ha="center", color=QUIET_INK, fontsize=SMALL_SIZE)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(0.0, 102.0)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    legend(axes)


def _bars(axes: Axes, table: Mapping[str, Shares]) -> None:
    for y, share in enumerate(table.values()):
        widths = (share.nothing, 100.0 - share.nothing - share.good, share.good)
        start = 0.0
        for (part, colour), width in zip(_PARTS, widths, strict=True):
            bar = axes.barh(y, width, 0.55, start, color=colour, label=None if y else part)
            if width >= 5.0:
                ink = INK if part == "between" else "white"
                axes.bar_label(bar, [f"{width:.0f} %"], label_type="center", color=ink, fontsize=7)
            start += width
    axes.set_yticks(range(len(table)), list(table))
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("configurations (%)")
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=SMALL_SIZE
    )
