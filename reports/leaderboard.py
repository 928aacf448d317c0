"""Draw the accuracy that each method keeps, as dots with their standard errors.

python -m reports leaderboard RUNS.csv METHOD ... --to PICTURE
"""

from __future__ import annotations

import argparse
from pathlib import Path

from vcl_radial.cli.arguments import Parser
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.reporting.figures.method_dots import method_dots
from vcl_radial.reporting.figures.style import save
from vcl_radial.reporting.rows import Rows

SETTINGS = {"curvature-vcl-two-tasks": "curvature-vcl (two tasks)"}
"""Methods of a file of settings, and how the picture names them."""


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
    scores = {
        SETTINGS.get(method, method): mean_and_standard_error(
            runs.where(method=method).values(options.score)
        )
        for method in options.methods
    }
    best_first = sorted(scores, key=lambda method: scores[method][0], reverse=True)
    save(method_dots({"": scores}, best_first, options.title, options.unit), options.to)
    return 0
