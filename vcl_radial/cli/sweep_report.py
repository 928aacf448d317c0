"""`vcl-radial sweep-report`: what a sweep found."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, count

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "sweep-report",
        help="what a sweep found: the best recipe, tables and pictures",
        description="Write the best recipe as a TOML for `run --method` or `refer --method`, how "
        "scores are spread over configurations, which keys matter, and what a score costs. The "
        "sweep may still be under way.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder that `sweep` named")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where to write (default: DIR/report)"
    )
    parser.add_argument(
        "--nothing",
        metavar="SCORE",
        type=_number,
        help="per cent below which nothing was learnt (default: a tenth of the way from chance "
        "to the best)",
    )
    parser.add_argument(
        "--good",
        metavar="SCORE",
        type=_number,
        help="per cent from which a configuration is good (default: nine tenths of that way)",
    )
    parser.add_argument(
        "--top",
        metavar="N",
        type=count,
        default=1,
        help="configurations of each method to write as recipes; after a search with one seed, a "
        "few seeds more on validation data tell which of the first is best (default: 1)",
    )
    parser.add_argument(
        "--by",
        metavar="SCORE",
        help="rank configurations by another score of their runs, such as average_nll (default: "
        "the one that was searched for)",
    )
    parser.set_defaults(command=_report)


def _number(text: str) -> float:
    """A finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return number


def _report(options: argparse.Namespace) -> int:
    from vcl_radial.sweeps.report import write_sweep_report

    to = options.to or options.folder / "report"
    write_sweep_report(
        options.folder, to, options.nothing, options.good, options.top, by=options.by
    )
    return DONE
