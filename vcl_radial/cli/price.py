"""`vcl-radial price`: what an approximate posterior loses against the exact one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import (
    DONE,
    INTERRUPTED,
    add_data_dir,
    add_settings,
    count,
    folder,
    settings_of,
)

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "price",
        help="what an approximate posterior loses against the exact one",
        description="Carry the posterior of one linear model through task sequences in many "
        "shapes: full, low rank, blocks, diagonal, radial. Scores, and nats from the exact "
        "posterior. The same command resumes after an interruption.",
    )
    parser.add_argument(
        "benchmarks",
        metavar="BENCHMARK",
        nargs="*",
        help="a task sequence that `list` prints, or a .toml file (default: four of them)",
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


def _price(options: argparse.Namespace) -> int:
    from vcl_radial.price.sequences import BENCHMARKS, plan

    settings = settings_of(options)
    names = list(dict.fromkeys(options.benchmarks)) or list(BENCHMARKS)
    planned = plan(names, range(options.seeds), settings)

    from vcl_radial.price.command import price_all

    try:
        price_all(planned, options.to, settings, options.data_dir)
    except KeyboardInterrupt:
        print("vcl-radial: stopped; what was measured is kept", file=sys.stderr)
        return INTERRUPTED
    return DONE
