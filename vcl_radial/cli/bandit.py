"""`vcl-radial bandit`: contextual bandits by Thompson sampling, published beside ours."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, add_data_dir, add_out, count

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

DATASETS = ("mushroom", "statlog", "adult")
METHODS = ("badam", "mc-dropout", "bbb", "vadam", "radial", "greedy", "uniform")


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "bandit",
        help="contextual bandits by Thompson sampling (mushroom, statlog, adult)",
        description="Play contextual bandits as Table 1 of the BAdam paper does and report "
        "cumulative rewards beside the published ones. Wants bandits/ in the data folder. Finished "
        "games are kept: the same command goes on from them.",
    )
    parser.add_argument(
        "datasets",
        metavar="DATASET",
        nargs="*",
        type=_dataset,
        help=f"{', '.join(DATASETS)} (default: all)",
    )
    parser.add_argument(
        "--method",
        dest="methods",
        metavar="NAME",
        nargs="+",
        choices=METHODS,
        default=list(METHODS),
        help=f"{', '.join(METHODS)} (default: all)",
    )
    parser.add_argument("--runs", metavar="N", type=count, default=10, help="default: 10")
    parser.add_argument(
        "--rounds", metavar="N", type=count, help="only the first N (default: every row once)"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=count, help="games at a time (default: one per core)"
    )
    add_data_dir(parser)
    add_out(parser, "runs/bandits")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where the report goes (default: OUT/report)"
    )
    parser.set_defaults(command=_bandit)


def _dataset(text: str) -> str:
    # Not `choices`: with nargs="*" argparse would hold the empty default against them.
    if text not in DATASETS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(DATASETS)}")
    return text


def _bandit(options: argparse.Namespace) -> int:
    from vcl_radial.runs.result_file import read_all
    from vcl_radial.runs.runner import available_cores
    from vcl_radial.tracks.bandits.data import load_table
    from vcl_radial.tracks.bandits.report import write_report
    from vcl_radial.tracks.bandits.runner import BanditUnit, perform

    names = dict.fromkeys(options.datasets or DATASETS)
    checksums = {name: load_table(name, options.data_dir).checksum for name in names}
    # Run by run over all methods: what is there after an interruption is comparable.
    units = [
        BanditUnit(method=method, seed=seed, dataset=name, rounds=options.rounds, data=data)
        for name, data in checksums.items()
        for seed in range(options.runs)
        for method in dict.fromkeys(options.methods)
    ]
    to = options.to or options.out / "report"
    perform(units, options.out, to, options.data_dir, options.jobs or available_cores())
    write_report(read_all(units, options.out), to, _in_words(options))
    return DONE


def _in_words(options: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "bandit", *options.datasets]
    words += ["--method", *options.methods] if tuple(options.methods) != METHODS else []
    words += ["--runs", str(options.runs)] if options.runs != 10 else []
    words += ["--rounds", str(options.rounds)] if options.rounds else []
    return shlex.join(words)
