"""`python -m reports price`: what an approximate posterior loses against the exact one."""

from __future__ import annotations

import argparse
from pathlib import Path

from vcl_radial.cli.arguments import (
    DONE,
    Parser,
    add_data_dir,
    add_settings,
    count,
    folder,
    settings_of,
)


def parser(program: str) -> Parser:
    """The command's arguments."""
    parser = Parser(
        prog=program,
        description="Carry the posterior of one linear model through task sequences in many "
        "shapes: full, low rank, blocks, diagonal, radial. Scores, and nats from the exact "
        "posterior. The same command resumes after an interruption.",
    )
    parser.add_argument(
        "benchmarks",
        metavar="BENCHMARK",
        nargs="*",
        help="a task sequence that `vcl-radial list` prints, or a .toml file (default: four)",
    )
    parser.add_argument(
        "--seeds", metavar="N", type=count, default=1, help="seeds 0 to N-1 (default: 1)"
    )
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=folder,
        default=Path("runs/price"),
        help="where to write (default: runs/price)",
    )
    add_data_dir(parser)
    add_settings(parser, "set keys of the features (options.units=500) or the stream")
    parser.set_defaults(command=_price)
    return parser


def _price(options: argparse.Namespace) -> int:
    from reports.price.sequences import BENCHMARKS, plan

    settings = settings_of(options)
    names = list(dict.fromkeys(options.benchmarks)) or list(BENCHMARKS)
    planned = plan(names, range(options.seeds), settings)

    from reports.price.command import price_all

    price_all(planned, options.to, settings, options.data_dir)
    return DONE
