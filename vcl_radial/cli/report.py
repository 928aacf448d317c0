"""`vcl-radial report`: tables, pictures and a page of finished runs, or of a sweep."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.cli.arguments import DONE, MAIN_METHODS, add_data_dir, count, folder
from vcl_radial.command_lines import command_line
from vcl_radial.errors import UserError
from vcl_radial.outside import consent

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands

_OF_SWEEPS = ("top", "by")


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "report",
        help="tables, pictures and a page of finished runs, or of a sweep",
        description="Write the tables and pictures of all finished runs below a folder, and one "
        "HTML page with all of them. For the folder of a sweep, which may still be running: the "
        "best recipes for `run --method`, all trials, which keys matter, and what a score costs.",
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=folder,
        help="what --out of `run` named, or a sweep's folder",
    )
    parser.add_argument(
        "--to", metavar="DIR", type=folder, help="where to write (default: FOLDER/report)"
    )
    parser.add_argument(
        "--first",
        metavar="METHOD",
        nargs="+",
        default=[],
        help="methods to show first (default: radial-vcl gaussian-vcl)",
    )
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="write the runs beside each report too, in few small files that can be committed: "
        "`report` makes it anew from these",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the modules that files in FOLDER name as their track: runs code of whoever "
        "wrote the folder",
    )
    add_data_dir(parser)
    sweeps = parser.add_argument_group("options for sweeps")
    sweeps.add_argument(
        "--top",
        metavar="N",
        type=count,
        help="number of configurations of each method to write as recipes (default: 1)",
    )
    sweeps.add_argument(
        "--by",
        metavar="SCORE",
        help="rank the configurations by this score of their runs, such as average_nll (default: "
        "the objective of the sweep)",
    )
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    of_sweep = {name: value for name in _OF_SWEEPS if (value := getattr(options, name)) is not None}
    command = command_line(
        "report",
        str(options.folder),
        to=options.to,
        data_dir=options.data_dir,
        evidence=options.evidence,
        first=options.first,
        trust=options.trust,
        **of_sweep,
    )
    to = options.to or options.folder / "report"
    if options.to is None and to.is_symlink():  # a folder from outside must not lead elsewhere
        raise UserError(f"{to}: is a link; remove it, or name a folder for the report with --to")
    with consent(options.trust):
        return _write(options, to, of_sweep, command)


def _write(options: argparse.Namespace, to: Path, of_sweep: Mapping[str, Any], command: str) -> int:
    """Write the report of a sweep or of runs."""
    if (options.folder / "sweep.toml").is_file():
        if options.first or options.evidence:
            raise UserError(
                f"--{'first' if options.first else 'evidence'}: {options.folder} is a sweep's "
                "folder, whose report is of its trials; leave it out, or give the folder of runs"
            )
        from vcl_radial.sweeps.report import write_sweep_report

        write_sweep_report(options.folder, to, command=command, **of_sweep)
        return DONE
    if of_sweep:
        raise UserError(
            f"--{next(iter(of_sweep))}: {options.folder} is not a sweep's folder; give the one "
            "that `sweep` named"
        )
    from vcl_radial.reporting.write import write_report

    data_dir = options.data_dir
    write_report(
        options.folder,
        to,
        first=MAIN_METHODS,
        named=options.first,
        command=command,
        data_dir=data_dir,
        with_evidence=options.evidence,
    )
    return DONE
