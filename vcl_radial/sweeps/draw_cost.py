"""What a configuration costs, against what it scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from vcl_radial.report.figures.style import FAINT, SMALL_SIZE, house_style, method_styles
from vcl_radial.runs.track import Direction
from vcl_radial.sweeps.draw import sheet
from vcl_radial.sweeps.results import Searched


def cost_against_score(
    searched: Sequence[Searched], words: str, direction: Direction, name: str
) -> Figure:
    """Every configuration: seconds of one run (training and evaluation) and score.

    The line of a method leads over those that no cheaper one equals.

    Args:
        searched: the methods on one benchmark.
        words: what the score is called.
        direction: "maximize" or "minimize".
        name: the title.

    Returns:
        The figure.
    """
    styles = method_styles([one.method for one in searched])
    notes = ["seconds of one run, training and evaluation", "line: the best for the cost"]
    with house_style():
        figure, grid = sheet(1, 4.2, 2.6, name, notes)
        axes = grid.axes(figure, 0)
        for one in searched:
            points = [
                (trial.seconds, trial.score)
                for trial in one.trials
                if trial.score is not None and trial.seconds
            ]
            if not points:
                continue
            x, y = np.array(sorted(points)).T
            style = styles[one.method]
            axes.plot(
                x,
                y,
                linestyle="none",
                marker=style.marker,
                markersize=4.5,
                markerfacecolor=style.colour,
                markeredgecolor="white",
                markeredgewidth=0.5,
                label=one.method,
            )
            bests = (np.maximum if direction == "maximize" else np.minimum).accumulate(y)
            axes.step(x, bests, where="post", color=style.colour, linewidth=1.2, zorder=1)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("seconds of a run")
        axes.set_ylabel(words)
        axes.grid(color=FAINT, linewidth=0.4)
        axes.legend(loc="best", frameon=False, fontsize=SMALL_SIZE)
    return figure
