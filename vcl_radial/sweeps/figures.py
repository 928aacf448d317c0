"""The pictures of a sweep: Optuna's plots in the style of the suite, and scores of all methods."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.category import StrCategoryLocator
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from vcl_radial.reporting.figures.drawing import legend, logarithmic, mark, sheet
from vcl_radial.reporting.figures.names import benchmark_label, method_label
from vcl_radial.reporting.figures.panels import label_columns
from vcl_radial.reporting.figures.style import FAINT, colour_map, house_style, method_styles
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.levels import Levels, counted
from vcl_radial.sweeps.results import SearchResult

if TYPE_CHECKING:
    import optuna
    from matplotlib.axes import Axes

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
    title = f"{benchmark_label(searched[0].benchmark)}: how many reach a score"
    with sheet(title, notes, [""], per_line=1, width=_WIDTH, height=_HEIGHT, grid="y") as (
        figure,
        (axes,),
    ):
        for method, scores in by_method.items():
            axes.ecdf(
                [score if math.isfinite(score) else worst for score in scores],
                complementary=higher,
                label=f"{method_label(method)} ({len(scores)})",
                color=styles[method].colour,
                linestyle=styles[method].linestyle,
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
    title = f"{benchmark_label(searched[0].benchmark)}: what a score costs"
    with sheet(title, notes, [""], per_line=1, width=_WIDTH, height=_HEIGHT) as (
        figure,
        (axes,),
    ):
        for one in searched:
            points = [(t.seconds, t.score) for t in one.trials if t.score is not None and t.seconds]
            if points:
                x, y = np.array(sorted(points)).T
                style, name = styles[one.method], method_label(one.method)
                axes.plot(x, y, style.marker, color=style.colour, mec="white", label=name)
                best = better.accumulate(y)
                axes.step(x, best, where="post", color=style.colour, linewidth=1.2, zorder=1)
        logarithmic(axes, "x")
        axes.set_xlabel("seconds of a run, training and evaluation")
        axes.set_ylabel(label)
        legend(axes)
    return figure


def history(studies: Sequence[optuna.Study], label: str) -> Figure:
    """Draw the score of every trial in order, with the best score so far, by method.

    Args:
        studies: studies named by their methods.
        label: the name of the score.
    """
    from optuna.visualization.matplotlib import plot_optimization_history

    names = [study.study_name for study in studies]
    styles = method_styles(names)
    with _optuna():
        axes = plot_optimization_history(studies, target_name=label)
        # Optuna draws two sets of dots, the second for constraints, and a line per study.
        parts = zip(names, axes.collections[::2], axes.lines, strict=True)
        for name, trials, best in parts:
            trials.set(color=styles[name].colour, sizes=[14], label=method_label(name))
            best.set(color=styles[name].colour, alpha=1.0, label="_")
        axes.grid(axis="y", color=FAINT, linewidth=0.4)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="trial; line: the best so far", ylabel=label)
        legend(axes)
        return _finished(axes, _WIDTH + 0.8, _HEIGHT + 0.6)


def slices(study: optuna.Study, label: str) -> Figure:
    """Draw the score over each key, a dot per trial; the colour is the number of the trial."""
    from optuna.visualization.matplotlib import plot_slice

    with _optuna():
        axes = np.ravel(np.asarray(plot_slice(study, target_name=label)))
        for panel in axes:
            panel.grid(axis="y", color=FAINT, linewidth=0.4)
            panel.collections[0].set(cmap=colour_map(), edgecolor="white", sizes=[22])
            if panel.get_xscale() == "log":
                logarithmic(panel, "x", ticks=4)
            elif isinstance(panel.xaxis.get_major_locator(), StrCategoryLocator):
                names = [text.get_text().strip("'") for text in panel.get_xticklabels()]
                label_columns(panel, range(len(names)), names, 1.4 / len(names))
        return _finished(axes[0], 1.4 + 1.9 * len(axes), _HEIGHT)


def importance(study: optuna.Study, label: str) -> Figure:
    """Draw how much each key matters for the score, by Optuna's PED-ANOVA.

    It is high where the best tenth of the trials keeps to certain values of a key (Watanabe, Bansal
    & Hutter, IJCAI 2023).
    """
    from optuna.visualization.matplotlib import plot_param_importances

    colour = method_styles([study.study_name])[study.study_name].colour
    with _optuna():
        axes = plot_param_importances(study, target_name=label)
        for bar in axes.patches:
            bar.set_color(colour)
        if (box := axes.get_legend()) is not None:
            box.remove()
        axes.set(xlabel="importance, in all 1", ylabel="")
        return _finished(axes, _WIDTH + 0.8, 0.7 + 0.28 * len(axes.patches))


def parallel(study: optuna.Study, label: str) -> Figure:
    """Draw each configuration as a line through its score and its values.

    A configuration without a key has the value `None` there.
    """
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    colours = colour_map() if study.direction.name == "MAXIMIZE" else colour_map().reversed()
    with _optuna():
        axes = plot_parallel_coordinate(study, target_name=label)
        for shown in axes.figure.axes:
            shown.spines["right"].set_visible(True)
            if shown.get_yscale() == "log":
                logarithmic(shown, "y")
        axes.collections[-1].set_cmap(colours)
        return _finished(axes, 0.5 + 1.1 * len(axes.figure.axes), 3.4)


@contextmanager
def _optuna() -> Iterator[None]:
    """Let Optuna draw in the style of the suite."""
    ggplot = mpl.style.library["ggplot"]
    with house_style(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns that its plots are experimental
        mpl.style.library["ggplot"] = mpl.RcParams()  # Optuna sets this style before it draws
        try:
            yield
        finally:
            mpl.style.library["ggplot"] = ggplot


def _finished(axes: Axes, width: float, height: float) -> Figure:
    """The figure of a plot of Optuna without its titles, in a size in inches."""
    from matplotlib import pyplot

    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_size_inches(width, height)
    figure.suptitle("")
    for place in ("left", "center"):
        axes.set_title("", loc=place)
    pyplot.close(figure)
    return figure
