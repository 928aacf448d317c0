"""`vcl-radial run`: run methods on a benchmark, and write their report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    add_data_dir,
    add_device,
    add_list,
    add_methods,
    add_out,
    add_settings,
    add_tuned,
    seed_range,
    settings_of,
)
from vcl_radial.cli.executors import add_executor, executor_of
from vcl_radial.errors import visible
from vcl_radial.integrations.loggers import LOGGERS, loggers_of

if TYPE_CHECKING:
    from vcl_radial.runs.attempt import RunOutcome


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Run methods on a benchmark, one run for each method and seed, and write a "
        "report: tables, pictures and one HTML page. The same command resumes after an "
        "interruption and repeats no finished run."
    )
    parser.add_argument(
        "benchmark", metavar="BENCHMARK", help="a name that `list` prints, or a .toml file"
    )
    add_methods(
        parser, "names that `list` prints, or .toml files (default: the benchmark's methods)"
    )
    parser.add_argument(
        "--seeds",
        metavar="N|A-B",
        type=seed_range,
        default=range(1),
        help="number of seeds, 0 to N-1, or the first and the last seed; a seed also selects the "
        "split of a table or the game of a bandit (default: 1)",
    )
    add_executor(parser)
    add_tuned(parser)
    add_settings(
        parser,
        "set keys of the recipe (epochs=40) or of the data (stream.tasks=2, data.size=128)",
    )
    parser.add_argument(
        "--ood",
        metavar="DATASET",
        help="a data set of the same image size, such as mnist: score how well uncertainty tells "
        "it from the tasks, and prediction sets; short for --set stream.ood=DATASET",
    )
    add_data_dir(parser, "; else the data are downloaded once, if that is allowed")
    add_out(parser, "runs")
    add_device(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the recipe of each method, what differs from the shipped one, and what a run "
        "would cost; write nothing",
    )
    add_list(
        parser,
        "--log",
        choices=LOGGERS,
        help="write the curves of each run into its folder; wandb is offline unless $WANDB_MODE is "
        "set",
    )
    parser.add_argument(
        "--no-model",
        action="store_true",
        help="keep no model in the folders of finished runs, which `vr.load` opens",
    )
    parser.add_argument(
        "--no-buffer",
        action="store_true",
        help="keep models without the training points that a method stores (replay, coresets): "
        "they predict, but learn no further task",
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    if options.ood is not None:
        settings |= {"stream.ood": options.ood}
    if options.dry_run:
        from vcl_radial.reporting.costs import print_costs

        print_costs(
            options.benchmark,
            options.methods,
            options.seeds,
            settings,
            tuned=options.tuned,
            device=options.device,
            data_dir=options.data_dir,
        )
        return DONE
    from vcl_radial.runs.command import perform_command

    done = perform_command(
        options.benchmark,
        options.methods,
        options.seeds,
        settings,
        out=options.out,
        tuned=options.tuned,
        jobs=options.jobs,
        lanes=options.lanes,
        device=options.device,
        data_dir=options.data_dir,
        log=loggers_of(options.log),
        executor=executor_of(options),
        model=not options.no_model,
        buffer=not options.no_buffer,
        meanwhile=_prepare_report,
    )
    if not done.is_first:
        return DONE
    print_faults(done.failures)
    if len(done.runs) == len(done.failures):
        return FAILED
    from vcl_radial.reporting.unchanged import report_of_command
    from vcl_radial.runs.doubts import doubts

    shown = report_of_command(done.runs, done.context, [end.run for end in done.failures])
    for line in doubts(done.runs, options.benchmark, options.methods, settings):
        print(f"note: {line}")
    return FAILED if done.failures or not shown else DONE


def _prepare_report() -> None:
    from vcl_radial.reporting.write import prepare  # after the workers have started to import

    prepare()


def print_faults(failures: Sequence[RunOutcome]) -> None:
    """Print the runs that have no result, one line per reason."""
    faults: dict[str | None, list[Any]] = {}
    for end in failures:
        faults.setdefault(end.fault, []).append(end.run)
    for fault, runs in faults.items():
        labels = ", ".join(run.label for run in runs)
        print(f"vcl-radial: {visible(f'{labels}: {fault}')}", file=sys.stderr)
