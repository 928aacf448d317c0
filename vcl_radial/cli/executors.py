"""Options that choose where runs are carried out: on this machine or on a Ray cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import count
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from vcl_radial.integrations.ray import RayExecutor


def add_executor(parser: argparse.ArgumentParser) -> None:
    """Add the options for carrying out runs, among them those that `executor_of` reads."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="number of runs at a time, each on one thread; runs on photographs share all cores if "
        "there are fewer runs than cores (default: one per core, or 1 on a GPU)",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=count,
        help="number of runs of one shape, such as seeds, that train as one program (default: 1; "
        "40 for tables; 64 on a GPU)",
    )
    parser.add_argument(
        "--executor",
        choices=("local", "ray"),
        default="local",
        help="run on this machine, or on the nodes of a Ray cluster (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="address of a running Ray cluster (default: the one that Ray finds, else a new one)",
    )
    parser.add_argument(
        "--cpus-per-trial",
        metavar="N",
        type=count,
        default=1,
        help="CPU cores, and threads, of each run on a Ray cluster (default: 1)",
    )
    parser.add_argument(
        "--gpus-per-trial",
        metavar="X",
        type=_share,
        default=0.0,
        help="GPUs of each run on a Ray cluster; with 0.25 four runs share a GPU (default: 0)",
    )


def executor_of(options: argparse.Namespace) -> RayExecutor | None:
    """The executor that the options choose; None for local worker processes.

    Raises:
        UserError: the options contradict each other.
    """
    if options.executor == "local":
        if options.address or options.gpus_per_trial or options.cpus_per_trial != 1:
            raise UserError(
                "--address, --cpus-per-trial and --gpus-per-trial need a Ray cluster: add "
                "--executor ray"
            )
        return None
    if options.device == "cuda" and not options.gpus_per_trial:
        raise UserError("--device cuda on a Ray cluster needs --gpus-per-trial above 0")
    from vcl_radial.integrations.ray import RayExecutor

    return RayExecutor(
        options.address, options.jobs, options.cpus_per_trial, options.gpus_per_trial
    )


def _share(text: str) -> float:
    """Parse a number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number
