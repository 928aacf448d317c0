"""The pictures of a sweep: scores over configurations, their cost, and which keys matter."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vcl_radial.reporting.figures.drawing import DOTTED, key_line, legend, logarithmic, mark, sheet
from vcl_radial.reporting.figures.style import colour_map, house_style, method_styles
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.importance import study_of
from vcl_radial.sweeps.levels import Levels, counted
from vcl_radial.sweeps.results import SearchResult, TrialResult
from vcl_radial.sweeps.space import Parameters, Searchable

_WIDTH, _HEIGHT = 4.2, 2.6  # of the axes, in inches


def distribution(
    searched: Sequence[SearchResult], label: str, level: Levels | None, direction: Direction
) -> Figure:
    """Draw the share of configurations that reach a score, a line per method.

    The figure follows Farquhar, Osborne and Gal 2020, Fig. 4. A diverged configuration reaches no
    score.

    Args:
        searched: results of the methods on one benchmark.
        label: the name of the score.
        level: levels to draw, or None.
        direction: "maximize" or "minimize"; a configuration reaches a score if its score is at
            least as good.
    """
    styles = method_styles([one.method for one in searched])
    by_method = {one.method: scores for one in searched if (scores := counted(one))}
    known = [score for scores in by_method.values() for score in scores if math.isfinite(score)]
    low, high = min(known), max(known)
    margin = 0.03 * (high - low) or 1.0
    higher = direction == "maximize"
    worst = low - margin if higher else high + margin
    notes = ["share of the configurations, by method", "in brackets: their number"]
    with sheet(
        "How many reach a score", notes, [""], per_line=1, width=_WIDTH, height=_HEIGHT, grid="y"
    ) as (figure, (axes,)):
        for method, scores in by_method.items():
            axes.ecdf(
                [score if math.isfinite(score) else worst for score in scores],
                complementary=higher,
                label=f"{method} ({len(scores)})",
                color=styles[method].colour,
                linewidth=1.6,
            )
        lines = {} if level is None else {"nothing learnt": level.nothing, "good": level.good}
        for name, value in lines.items():
            if low < value < high:
                mark(axes, value, name)
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(0.0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel(label)
        legend(axes)
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
    better = np.maximum if direction == "maximize" else np.minimum
    notes = ["a dot per configuration", "line: the best of all that are not slower"]
    with sheet("What a score costs", notes, [""], per_line=1, width=_WIDTH, height=_HEIGHT) as (
        figure,
        (axes,),
    ):
        for one in searched:
            points = [(t.seconds, t.score) for t in one.trials if t.score is not None and t.seconds]
            if points:
                x, y = np.array(sorted(points)).T
                style = styles[one.method]
                axes.plot(x, y, style.marker, color=style.colour, mec="white", label=one.method)
                best = better.accumulate(y)
                axes.step(x, best, where="post", color=style.colour, linewidth=1.2, zorder=1)
        logarithmic(axes, "x")
        axes.set_xlabel("seconds of a run, training and evaluation")
        axes.set_ylabel(label)
        legend(axes)
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

    colours = colour_map() if direction == "maximize" else colour_map().reversed()
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
                    lines.set_cmap(colours)
        pyplot.close(figure)
    return figure


def along_numbers(search: SearchResult, label: str) -> Figure:
    """Draw the score along each number of a grid, one line per combination of all other keys.

    A combination in which no number varies is a dotted line in all panels.

    Args:
        search: results of one method, with a number that varies.
        label: the name of the score.
    """
    panels = numbers_of(search)
    drawn = {trial.number for lines in panels.values() for line in lines.values() for trial in line}
    # Trials that differ only in the key of a panel are on one of its lines.
    levels = {
        _named(trial.parameters, panels): trial.score or 0.0
        for trial in _scored(search)
        if trial.number not in drawn
    }
    styles = method_styles([*dict.fromkeys(chain(*panels.values())), *levels])
    key = [
        key_line(name, s.colour, **({"linestyle": DOTTED} if name in levels else s.look))
        for name, s in styles.items()
    ]
    with sheet(
        search.method,
        ["a line per combination of the other keys"],
        [""] * len(panels),
        per_line=len(panels),
        width=3.0,
        height=_HEIGHT,
        key=key,
        grid="y",
    ) as (figure, all_axes):
        for axes, (number, lines) in zip(all_axes, panels.items(), strict=True):
            for name, line in lines.items():
                axes.errorbar(
                    [trial.parameters[number] for trial in line],
                    [trial.score or 0.0 for trial in line],
                    [trial.standard_error or 0.0 for trial in line],
                    color=styles[name].colour,
                    **styles[name].look,
                )
            for name, score in levels.items():
                axes.axhline(score, color=styles[name].colour, linestyle=DOTTED)
            ticks = sorted({float(trial.parameters[number]) for trial in chain(*lines.values())})
            if ticks[0] > 0 and ticks[-1] > 8 * ticks[0]:
                axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
            axes.set_xlabel(number)
            axes.sharey(all_axes[0])
        all_axes[0].set_ylabel(label)
    return figure


def numbers_of(search: SearchResult) -> dict[str, dict[str, list[TrialResult]]]:
    """For each number that varies, the lines along it, by the values of all other keys.

    A line holds the trials that differ in this number alone, sorted by it.
    """
    scored = _scored(search)
    lines: dict[str, dict[str, list[TrialResult]]] = {}
    for trial in scored:
        for key, value in trial.parameters.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                line = lines.setdefault(key, {}).setdefault(_named(trial.parameters, [key]), [])
                line.append(trial)
    for key, by_name in lines.items():
        lines[key] = {
            name: sorted(line, key=lambda trial: float(trial.parameters[key]))
            for name, line in by_name.items()
            if len(line) > 1
        }
    return {key: by_name for key, by_name in lines.items() if by_name}


def _scored(search: SearchResult) -> list[TrialResult]:
    trials = sorted(search.trials, key=lambda trial: trial.number)
    return [trial for trial in trials if trial.score is not None]


def _named(parameters: Parameters, without: Collection[str]) -> str:
    """The label of a configuration without some of its keys."""
    kept = {k.rpartition(".")[2]: value for k, value in parameters.items() if k not in without}
    return ", ".join(f"{name} = {cell(value)}" for name, value in kept.items())


def importance(table: pd.DataFrame) -> Figure:
    """Draw the importance of each key by fANOVA and by PED-ANOVA, a bar per method.

    Args:
        table: a table of `importances` with at least one row.
    """
    methods, keys = (list(dict.fromkeys(table[column])) for column in ("method", "key"))
    styles = method_styles(methods)
    measures = {"fanova": "fANOVA", "ped_anova": "PED-ANOVA"}
    with sheet(
        "How much each key matters",
        ["importance in %"],
        list(measures.values()),
        per_line=len(measures),
        width=2.4,
        height=len(keys) * max(0.22, 0.13 * len(methods)),
        key=[key_line(name, style.colour, linewidth=5.0) for name, style in styles.items()],
        grid="x",
    ) as (figure, all_axes):
        for axes, measure in zip(all_axes, measures, strict=True):
            shares = 100 * table.pivot(index="key", columns="method", values=measure)
            bars = shares.loc[keys[::-1], methods[::-1]]
            colours: Any = {name: style.colour for name, style in styles.items()}
            bars.plot.barh(ax=axes, color=colours, width=0.8, legend=False, ylabel="")
            axes.set_xlim(left=0.0)
        all_axes[1].set_yticklabels([])
    return figure
