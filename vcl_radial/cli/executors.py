"""Where a command's runs are carried out: here, or on the nodes of a Ray cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import count, usable_device
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from vcl_radial.runs.attempt import Report
    from vcl_radial.runs.executor import MakeExecutor
    from vcl_radial.runs.on_ray import RayExecutor
    from vcl_radial.runs.place import Place
    from vcl_radial.runs.track import AnyTrack


def add_executor(parser: argparse.ArgumentParser) -> None:
    """The options of how runs are carried out, those that `executor_of` reads among them."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="runs at a time, each on one thread; fewer runs on photographs share all cores "
        "(default: one per core; on a GPU 1)",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=count,
        help="runs of one shape, such as seeds, that train as one program (default: 1; for tables "
        "40; on a GPU 64)",
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
        help="a running Ray cluster (default: the one that Ray finds, else one started here)",
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
        help="GPUs of each run on a Ray cluster; with 0.25 four runs share one (default: 0)",
    )


def executor_of(options: argparse.Namespace) -> MakeExecutor | None:
    """What makes the executor that the options ask for; None for worker processes here."""
    if options.executor == "local":
        return None

    def make(track: AnyTrack, place: Place, on_step: Report) -> RayExecutor:
        from vcl_radial.runs.on_ray import RayExecutor

        return RayExecutor(
            track,
            place,
            options.address,
            options.jobs,
            options.cpus_per_trial,
            options.gpus_per_trial,
        )

    return make


def check_executor(options: argparse.Namespace, track: AnyTrack, what: str) -> None:
    """See that the options of where runs are carried out fit together, and the track.

    Args:
        options: of the command.
        track: whose runs they are.
        what: is run, in words.

    Raises:
        UserError: they do not.
    """
    if options.device not in ("auto", *track.devices):
        raise UserError(f"--device {options.device}: runs of {what} compute on a CPU only")
    of_ray = options.address or options.gpus_per_trial or options.cpus_per_trial != 1
    if options.executor == "local" and of_ray:
        raise UserError(
            "--address, --cpus-per-trial and --gpus-per-trial are of a Ray cluster: add "
            "--executor ray"
        )
    if options.device == "cuda" and options.executor == "ray" and not options.gpus_per_trial:
        raise UserError("--device cuda on a Ray cluster needs --gpus-per-trial above 0")


def device_of(options: argparse.Namespace, track: AnyTrack) -> str:
    """The device of a track's runs: "cpu" or "cuda"."""
    if "cuda" not in track.devices:
        return "cpu"
    if options.executor == "local":
        return usable_device(options.device)
    return "cuda" if options.gpus_per_trial else "cpu"


def _share(text: str) -> float:
    """A number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number
