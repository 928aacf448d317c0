"""`vcl-radial run`: methods on a benchmark, and its heatmaps."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    MAIN_METHODS,
    add_data_dir,
    add_device,
    add_methods,
    add_out,
    add_settings,
    add_tuned,
    count,
    in_words,
    may_have_cuda,
    usable_device,
)
from vcl_radial.errors import UserError
from vcl_radial.runs.processes import start_server
from vcl_radial.tracks.continual import WORKER_MODULES

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

LOGGERS = ("tensorboard", "wandb")


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "run",
        help="run methods on a benchmark and draw its heatmaps",
        description="Run methods on a benchmark. Finished runs are kept, interrupted ones go on "
        "from their last finished task, and the report is drawn anew at the end.",
    )
    parser.add_argument("benchmark", metavar="BENCHMARK", help="a name of `list`, or a .toml file")
    add_methods(parser, "names of `list`, or .toml files (default: radial-vcl gaussian-vcl)")
    parser.add_argument(
        "--seeds", metavar="N", type=count, default=1, help="seeds 0 to N-1 (default: 1)"
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help="runs at a time, one thread each (default: one per core; on a GPU 1)",
    )
    parser.add_argument(
        "--lanes",
        metavar="N",
        type=count,
        help="runs of one shape, as seeds are, that train as one program (default: 1; on a GPU 64)",
    )
    add_tuned(parser)
    add_settings(
        parser, "override keys of the recipe (epochs=40) or of the stream (stream.tasks=2)"
    )
    add_data_dir(parser, ", else downloaded once")
    add_out(parser, "runs")
    add_device(parser)
    parser.add_argument(
        "--log",
        choices=LOGGERS,
        nargs="+",
        action="extend",
        default=[],
        help="log the curves of each run into its folder; wandb stays offline unless $WANDB_MODE "
        "says otherwise",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    in_workers = False
    if "torch" not in sys.modules and (options.device == "cpu" or not may_have_cuda()):
        # It imports while this process looks at the arguments, and ends with this process.
        in_workers = start_server("cpu", *WORKER_MODULES)
    from vcl_radial.runs.catalogue import parse_setting, plan
    from vcl_radial.runs.folder import check_output
    from vcl_radial.tracks.continual.preflight import check_runs

    methods = options.methods or MAIN_METHODS
    settings = dict(parse_setting(text) for text in options.settings)
    runs = plan(options.benchmark, methods, range(options.seeds), settings, options.tuned)
    loggers = tuple(dict.fromkeys(options.log))
    if loggers and (options.lanes or 1) > 1:
        raise UserError("--log: lanes train as one program and log nothing; use --lanes 1")
    check_runs(runs)
    check_output(options.out)

    from vcl_radial.report.write import prepare, write_report
    from vcl_radial.runs.folder import RunFolder
    from vcl_radial.runs.run import Place
    from vcl_radial.tracks.continual.runner import perform

    place = Place(
        options.out,
        options.data_dir,
        usable_device(options.device),
        log=loggers,
        command=in_words("run", options),
    )
    runs = [run.on_data(options.data_dir) for run in runs]
    lanes = 1 if loggers else options.lanes
    ends = perform(runs, place, options.jobs, lanes, in_workers=in_workers, meanwhile=prepare)
    faults: dict[str, list[str]] = {}
    for end in ends:
        if end.fault is not None:
            faults.setdefault(end.fault, []).append(f"{end.run.method} seed {end.run.seed}")
    for fault, names in faults.items():
        print(f"vcl-radial: {', '.join(names)}: {fault}", file=sys.stderr)
    if len(ends) == len(runs) and len(ends) == sum(map(len, faults.values())):
        return FAILED
    order = list(dict.fromkeys(run.method for run in runs))
    missing = write_report(options.out, options.out / "report", runs[0].benchmark, order)
    unseen = any(RunFolder(options.out, run).path in missing for run in runs)
    return FAILED if faults or unseen else DONE
