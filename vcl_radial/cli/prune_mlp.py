"""`vcl-radial prune mlp`: Fig. 2 of the BAdam paper, an MLP pruned by signal-to-noise ratio."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from vcl_radial.cli.arguments import DONE, add_data_dir, add_out, count

_NAMES = ("badam", "vadam", "bbb", "mc-dropout", "radial")
"""Of `vcl_radial.papers.pruning.mlp_methods.METHODS`, which is heavy to import."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `vcl-radial prune mlp`."""
    parser.add_argument(
        "--method",
        dest="methods",
        metavar="NAME",
        nargs="+",
        choices=_NAMES,
        default=list(_NAMES),
        help=f"{', '.join(_NAMES)} (default: all)",
    )
    parser.add_argument(
        "--dataset",
        choices=("mnist", "fashion-mnist", "digits"),
        default="mnist",
        help="default: mnist; digits comes with scikit-learn",
    )
    parser.add_argument("--seeds", metavar="N", type=count, default=3, help="default: 3")
    parser.add_argument("--epochs", metavar="N", type=count, help="default: 100, as in the paper")
    add_data_dir(parser, ", else a cache that is filled by download")
    add_out(parser, "runs/prune/mlp")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where the report goes (default: OUT/report)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Train and prune what is not finished, then write the report.

    Raises:
        UserError: the data cannot be read or a result cannot be written.
        Diverged: a loss is no longer a finite number.
    """
    from vcl_radial.quiet import quiet

    with quiet():
        from vcl_radial.papers.pruning.mlp import perform
        from vcl_radial.papers.pruning.mlp_methods import make_unit
        from vcl_radial.papers.pruning.mlp_report import write_report
        from vcl_radial.runs.result_file import read_all

    units = [
        make_unit(name, seed, arguments.dataset, arguments.epochs)
        for seed in range(arguments.seeds)
        for name in dict.fromkeys(arguments.methods)
    ]
    to = arguments.to or arguments.out / "report"
    perform(units, arguments.out, to, arguments.data_dir)
    write_report(read_all(units, arguments.out), to, _in_words(arguments))
    return DONE


def _in_words(arguments: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "prune", "mlp"]
    words += ["--method", *arguments.methods] if list(arguments.methods) != list(_NAMES) else []
    words += ["--dataset", arguments.dataset] if arguments.dataset != "mnist" else []
    words += ["--seeds", str(arguments.seeds)] if arguments.seeds != 3 else []
    words += ["--epochs", str(arguments.epochs)] if arguments.epochs else []
    return shlex.join(words)
