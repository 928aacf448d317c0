"""`vcl-radial report`: tables, pictures and a page of finished runs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, MAIN_METHODS

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "report",
        help="tables, pictures and a page of finished runs",
        description="Draw the tables and pictures of all finished runs below a folder, and put "
        "them on one HTML page that needs nothing beside it.",
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder given to --out")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="where to write (default: DIR/report)"
    )
    parser.add_argument(
        "--first",
        metavar="METHOD",
        nargs="+",
        default=MAIN_METHODS,
        help="methods to show first (default: radial-vcl gaussian-vcl)",
    )
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from vcl_radial.report.write import write_report

    words = ["vcl-radial", "report", str(options.folder)]
    words += ["--to", str(options.to)] if options.to else []
    words += ["--first", *options.first] if tuple(options.first) != MAIN_METHODS else []
    write_report(
        options.folder,
        options.to or options.folder / "report",
        first=options.first,
        command=shlex.join(words),
    )
    return DONE
