"""`vcl-radial update`: a kept model learns one more task, in a new run."""

from __future__ import annotations

import argparse
from pathlib import Path

from vcl_radial.cli.arguments import (
    DONE,
    FAILED,
    add_data_dir,
    add_device,
    add_out,
    add_settings,
    folder,
    settings_of,
)
from vcl_radial.cli.run import print_faults


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Let the model that a finished run keeps learn one more task, with its posterior as the "
        "prior. The result is a new run, which names its parent by checksum, and a report of the "
        "whole chain of tasks. The same command resumes after an interruption."
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=folder,
        help="the folder of the run that keeps the model, or of a method with several seeds",
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        type=folder,
        help="the task: an .npz file with x and y (and x_test and y_test), a folder of images with "
        "a folder for each class; for the model of a table also a .csv file; for one of "
        "photographs a folder with labels.csv and images/",
    )
    parser.add_argument(
        "--name", metavar="TASK", help="name of the task (default: that of DATA without ending)"
    )
    add_settings(parser, "set keys of the training, such as epochs=5 or learning_rate=1e-3")
    add_data_dir(parser, "; on these data the earlier tasks are scored again")
    add_out(parser, "runs")
    add_device(parser)
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the modules that the model names; this runs code that its author has written",
    )
    parser.set_defaults(command=_update)


def _update(options: argparse.Namespace) -> int:
    from vcl_radial.data.data_files import expanded
    from vcl_radial.reporting.unchanged import report_of_command
    from vcl_radial.runs.folder import RunFolder
    from vcl_radial.runs.updating import perform_update

    done = perform_update(
        options.folder,
        expanded(Path(options.data)),
        name=options.name,
        settings=settings_of(options),
        out=options.out,
        device=options.device,
        data_dir=options.data_dir,
        trust=options.trust,
    )
    print_faults(done.failures)
    if done.failures:
        return FAILED
    for run in done.runs:
        print(f"model: {RunFolder(done.context.out, run).path}")
    return DONE if report_of_command(done.runs, done.context) else FAILED
