"""`vcl-radial sweep`: search for good settings."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, FAILED, add_data_dir, add_device, count, usable_device

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands
    from vcl_radial.runs.place import Place
    from vcl_radial.runs.supervisor import Report
    from vcl_radial.runs.track import AnyTrack
    from vcl_radial.sweeps.command import MakeExecutor


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "sweep",
        help="search for good settings of methods",
        description="Try settings of methods on a benchmark, scored on validation data: a grid, "
        "random ones, or those that earlier ones suggest. The same command goes on where it was "
        "left; `sweep-report` draws what came out.",
    )
    parser.add_argument("sweep", metavar="FILE", help="a .toml file, or the name of a shipped one")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="runs at a time, one thread each (default: one per core; on a GPU 1)",
    )
    parser.add_argument(
        "--executor",
        choices=("local", "ray"),
        default="local",
        help="worker processes here, or the nodes of a Ray cluster (default: local)",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of a running Ray cluster (default: one that Ray finds, else one started here)",
    )
    parser.add_argument(
        "--cpus-per-trial",
        metavar="N",
        type=count,
        default=1,
        help="of each run on a Ray cluster, and its threads (default: 1)",
    )
    parser.add_argument(
        "--gpus-per-trial",
        metavar="X",
        type=_share,
        default=0.0,
        help="of each run on a Ray cluster; 0.25 lets four share one (default: 0)",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=count,
        help="runs of one shape that train as one program (default: 1; on a GPU 64)",
    )
    parser.add_argument(
        "--trials", metavar="N", type=count, help="trials of each method, instead of the file's"
    )
    parser.add_argument(
        "--storage",
        metavar="URL",
        help="a database that shows the trials to others, through Optuna's storage",
    )
    add_data_dir(parser, ", else downloaded once")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("runs/sweeps"),
        help="the sweep gets a folder of its own in it (default: runs/sweeps)",
    )
    add_device(parser)
    parser.set_defaults(command=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    from vcl_radial.runs.folder import check_output
    from vcl_radial.sweeps.specification import find, read

    plans = read(find(options.sweep), options.trials)
    check_output(options.out)
    plans[0].track.check_files([plan.base for plan in plans], options.data_dir)

    from vcl_radial.runs.place import Place
    from vcl_radial.sweeps.command import Means, sweep

    means = Means(options.jobs, options.lanes, options.storage)
    if options.executor == "ray":
        means = replace(means, executor=_ray(options))
        device = "cuda" if options.gpus_per_trial else "cpu"
    else:
        device = usable_device(options.device)
    place = Place(options.out, options.data_dir, device, command=_in_words(options))
    studies = sweep(plans, place, means)
    print()
    for study in studies:
        best = study.best()
        outcomes = [result.outcome for result in study.results.values()]
        print(f"{study.plan.label}: " + _counts(outcomes))
        if best is not None:
            settings = study.trials[best].parameters
            words = ", ".join(f"{key} = {value}" for key, value in settings.items())
            print(f"  best: trial {best}, {study.results[best].score:.4g} with {words}")
    folder = options.out / plans[0].name
    print(f"  {folder / 'trials.csv'}; vcl-radial sweep-report {folder}")
    return DONE if any(study.best() is not None for study in studies) else FAILED


def _ray(options: argparse.Namespace) -> tuple[str, MakeExecutor]:
    from vcl_radial.sweeps.on_ray import RayExecutor

    def make(track: AnyTrack, place: Place, report: Report) -> RayExecutor:
        return RayExecutor(
            track,
            place,
            options.address,
            options.jobs,
            options.cpus_per_trial,
            options.gpus_per_trial,
        )

    return "a Ray cluster", make


def _in_words(options: argparse.Namespace) -> str:
    """The command, with what decides the numbers."""
    words = ["vcl-radial", "sweep", options.sweep]
    words += ["--trials", str(options.trials)] if options.trials else []
    words += ["--lanes", str(options.lanes)] if options.lanes else []
    return shlex.join(words)


def _share(text: str) -> float:
    """A number of at least 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def _counts(outcomes: Sequence[str]) -> str:
    kinds = [kind for kind in ("finished", "pruned", "diverged", "failed") if kind in outcomes]
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds) or "no trial has ended"
