"""Draw the accuracy that each method keeps, as dots with their standard errors.

python -m reports leaderboard RUNS.csv METHOD ... --to PICTURE
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from vcl_radial.cli.arguments import Parser
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.figures.drawing import sheet
from vcl_radial.reporting.figures.names import method_label
from vcl_radial.reporting.figures.style import (
    FAINT,
    QUIET_INK,
    SMALL_SIZE,
    method_styles,
    save,
)
from vcl_radial.reporting.rows import Rows

SETTINGS = {"curvature-vcl-two-tasks": "curvature-vcl (two tasks)"}
"""Methods of a file of settings, and how the picture names them."""


def picture(runs: Rows, methods: Sequence[str], score: str, title: str, unit: str) -> Figure:
    """One dot for each method: the mean over seeds, with its standard error.

    Args:
        runs: rows with `method`, `seed` and the score.
        methods: methods to show, sorted here by their mean.
        score: column of the score.
        title: title of the figure.
        unit: label of the axis of scores.
    """
    scores = {m: mean_and_standard_error(runs.where(method=m).values(score)) for m in methods}
    order = sorted(scores, key=lambda method: scores[method][0])
    names = [SETTINGS.get(method, method) for method in order]
    styles = method_styles(names)
    notes = ["mean and standard error over seeds"]
    height = 0.2 * len(order)
    with sheet(title, notes, [""], per_line=1, width=4.2, height=height, grid="x") as (
        figure,
        (axes,),
    ):
        for line, (method, name) in enumerate(zip(order, names, strict=True)):
            (mean, error), style = scores[method], styles[name]
            axes.plot([0, mean], [line, line], color=FAINT, linewidth=0.8, zorder=1)
            look: dict[str, Any] = {
                "color": style.colour,
                "marker": style.marker,
                "markersize": 4.5,
            }
            axes.errorbar(mean, line, xerr=error, **look)
            axes.annotate(
                f"{mean:.1f}",
                (mean + (0.0 if math.isnan(error) else error), line),
                (5, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL_SIZE,
                color=QUIET_INK,
            )
        axes.set_yticks(range(len(order)), [*map(method_label, names)])
        axes.set(xlim=(0, 105), ylim=(-0.7, len(order) - 0.3), xlabel=unit)
    return figure


def parser(program: str) -> Parser:
    """The parser of `python -m reports leaderboard`."""
    made = Parser(program, description=__doc__.partition("\n")[0])
    made.add_argument("runs", type=Path, help="a runs.csv, with a row for each run")
    made.add_argument("methods", nargs="+", help="the methods to show")
    made.add_argument("--score", default="average_accuracy", help="the column of the score")
    made.add_argument("--title", default="Accuracy of the final network", help="the title")
    made.add_argument("--unit", default="%", help="the label of the axis")
    made.add_argument("--to", type=Path, required=True, help="the picture, without its ending")
    made.set_defaults(command=draw)
    return made


def draw(options: argparse.Namespace) -> int:
    """Draw the picture that the command names."""
    runs = Rows.read(options.runs)
    save(picture(runs, options.methods, options.score, options.title, options.unit), options.to)
    return 0
