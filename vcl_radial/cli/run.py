"""`vcl-radial run`: methods on a benchmark, and their report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    add_data_dir,
    add_device,
    add_methods,
    add_out,
    add_settings,
    add_tuned,
    may_have_cuda,
    seed_range,
    settings_of,
)
from vcl_radial.cli.executors import add_executor, check_executor, device_of, executor_of
from vcl_radial.command_lines import command_line
from vcl_radial.errors import UserError, visible

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands
    from vcl_radial.runs.attempt import Ended
    from vcl_radial.runs.track import AnyTrack

LOGGERS = ("tensorboard", "wandb")


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "run",
        help="run methods on a benchmark and write its report",
        description="Run methods on a benchmark, one run for each method and seed, and write a "
        "report: tables, pictures and one HTML page. The same command resumes after an "
        "interruption and repeats no finished run.",
    )
    parser.add_argument(
        "benchmark", metavar="BENCHMARK", help="a name that `list` prints, or a .toml file"
    )
    add_methods(
        parser, "names that `list` prints, or .toml files (default: those of the benchmark)"
    )
    parser.add_argument(
        "--seeds",
        metavar="N|A-B",
        type=seed_range,
        default=range(1),
        help="number of seeds, 0 to N-1, or the first and the last of them; a seed is also a split "
        "of a table or a game of a bandit (default: 1)",
    )
    add_executor(parser)
    add_tuned(parser)
    add_settings(
        parser,
        "set keys of the recipe (epochs=40) or of the data (stream.tasks=2, data.size=128)",
    )
    add_data_dir(parser, "; else the data are downloaded once, if that is allowed")
    add_out(parser, "runs")
    add_device(parser)
    parser.add_argument(
        "--log",
        choices=LOGGERS,
        nargs="+",
        action="extend",
        default=[],
        help="write the curves of each run into its folder; wandb is offline unless $WANDB_MODE is "
        "set",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from vcl_radial.runs import catalogue, planning
    from vcl_radial.runs.processes import start_server

    track = catalogue.track_of(catalogue.load("benchmark", options.benchmark))
    in_workers = False
    executor = executor_of(options)
    alone = "torch" in sys.modules or track.uses_all_cores or executor is not None
    if not alone and (options.device == "cpu" or not may_have_cuda()):
        # It imports while this process looks at the arguments, and ends with this process.
        in_workers = start_server("cpu", *track.worker_modules)
    from vcl_radial.runs.folder import check_output

    settings = settings_of(options)
    seeds = options.seeds
    runs = planning.plan(options.benchmark, options.methods, seeds, settings, options.tuned)
    check_options(track, options)
    track.check_runs(runs)
    check_output(options.out)

    from vcl_radial.report.write import prepare, report_of_command
    from vcl_radial.runs.place import Place
    from vcl_radial.runs.runner import perform

    place = Place(
        options.out,
        options.data_dir,
        device_of(options, track),
        log=tuple(dict.fromkeys(options.log)),
        command=command_line(
            "run",
            options.benchmark,
            method=options.methods,
            seeds=_in_words(seeds) if seeds != range(1) else None,
            lanes=options.lanes,
            tuned=options.tuned,
            set=options.settings,
        ),
    )
    runs = [track.on_data(run, options.data_dir) for run in runs]
    if _under_torchrun():
        from vcl_radial.runs.together import perform_together

        together = perform_together(runs, place)
        if together is None:
            return DONE
        ends = together
    else:
        lanes = 1 if place.log else options.lanes
        ends = perform(
            runs,
            place,
            options.jobs,
            lanes,
            in_workers=in_workers,
            executor=executor,
            meanwhile=prepare,
        )
    faults = _print_faults(ends)
    if len(ends) == len(runs) == faults:
        return FAILED
    shown = report_of_command(runs, place, [end.run for end in ends if end.fault is not None])
    return FAILED if faults or not shown else DONE


def check_options(track: AnyTrack, options: argparse.Namespace) -> None:
    """See that the track has what the options ask for.

    Raises:
        UserError: it has not.
    """
    if _under_torchrun() and not track.has_peers:
        raise UserError(
            f"torchrun: a run of {options.benchmark} is of one process; start it without torchrun"
        )
    if _under_torchrun() and (options.jobs or 1) > 1:
        raise UserError("--jobs is for a single process: leave it out under torchrun")
    if options.log and (options.lanes or 1) > 1:
        raise UserError("--log: lanes train as one program and log nothing; use --lanes 1")
    if (options.lanes or 1) > 1 and not track.has_lanes:
        raise UserError(f"--lanes: runs of {options.benchmark} train one by one; use --lanes 1")
    check_executor(options, track, options.benchmark)


def _under_torchrun() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def _print_faults(ends: Sequence[Ended]) -> int:
    """Name the runs that have no result, those of one reason together; how many there are."""
    faults: dict[str, list[Any]] = {}
    for end in ends:
        if end.fault is not None:
            faults.setdefault(end.fault, []).append(end.run)
    for fault, runs in faults.items():
        labels = ", ".join(run.label for run in runs)
        print(f"vcl-radial: {visible(f'{labels}: {fault}')}", file=sys.stderr)
    return sum(map(len, faults.values()))


def _in_words(seeds: range) -> str:
    """As `--seeds` takes them."""
    return f"{seeds[0]}-{seeds[-1]}" if seeds[0] else str(len(seeds))
