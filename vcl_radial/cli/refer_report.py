"""`vcl-radial refer-report`: tables, pictures and a page of finished referral runs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, add_data_dir

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "refer-report",
        help="retinopathy: tables and pictures of finished runs of `refer`",
        description="Write, for each benchmark of the finished runs below a folder, Table 1 of "
        "the paper beside its published rows, referral and calibration curves, what uncertainty "
        "finds, and sheets of the most and least certain photographs (of drawn pictures and IDRiD "
        "alone).",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder given to --out")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where to write (default: DIR/report)"
    )
    add_data_dir(parser)
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from vcl_radial.tracks.retinopathy.report import write_referral_report

    words = ["vcl-radial", "refer-report", str(options.folder)]
    words += ["--to", str(options.to)] if options.to else []
    write_referral_report(
        options.folder,
        options.to or options.folder / "report",
        options.data_dir,
        shlex.join(words),
    )
    return DONE
