"""`vcl-radial leaderboard`: methods x benchmarks from the finished runs of several folders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vcl_radial.cli.arguments import DONE, FAILED, add_data_dir, folder
from vcl_radial.errors import UserError, visible


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Write the leaderboard of all finished task sequences below some folders: accuracy and "
        "average rank of every method, and every score of each benchmark, as Markdown, LaTeX, CSV, "
        "a picture and a page whose tables a click sorts. With --check, check an entry instead: a "
        "folder that `report --evidence` has written."
    )
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=folder,
        help="folders of `run --out`, or of reports with evidence",
    )
    parser.add_argument(
        "--to",
        metavar="DIR",
        type=folder,
        default=Path("leaderboard"),
        help="where to write (default: leaderboard)",
    )
    entries = parser.add_argument_group("options for entries")
    entries.add_argument(
        "--check",
        action="store_true",
        help="check each folder as an entry: checksums, settings of the benchmarks, scores",
    )
    entries.add_argument(
        "--repeat",
        action="store_true",
        help="also train the quickest run again, and compare its accuracy",
    )
    entries.add_argument(
        "--trust",
        action="store_true",
        help="import the classes that the entry names; this runs code that its author has written",
    )
    add_data_dir(parser)
    parser.set_defaults(command=_leaderboard)


def _leaderboard(options: argparse.Namespace) -> int:
    if options.check:
        return _check(options)
    if options.repeat:
        raise UserError("checks an entry; give --check too", "--repeat")
    from vcl_radial.config.command_lines import command_line
    from vcl_radial.reporting.leaderboard import write_leaderboard

    command = command_line("leaderboard", *map(str, options.folders), to=str(options.to))
    write_leaderboard(options.folders, options.to, command)
    return DONE


def _check(options: argparse.Namespace) -> int:
    from vcl_radial.data.data_files import checked_folder
    from vcl_radial.reporting.entries import check_entry

    data_dir, failed = checked_folder(options.data_dir), False
    for entry in options.folders:
        lines, faults = check_entry(
            entry, repeat=options.repeat, trust=options.trust, data_dir=data_dir
        )
        for line in lines:
            print(visible(line))
        for fault in faults:
            print(f"fault: {visible(fault)}", file=sys.stderr)
        failed = failed or bool(faults)
    return FAILED if failed else DONE
