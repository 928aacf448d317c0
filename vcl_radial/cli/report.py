"""`vcl-radial report`: write tables, pictures and a page of finished runs, or of a sweep."""

from __future__ import annotations

import argparse

from vcl_radial.cli.arguments import DONE, add_data_dir, add_list, count, folder


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "Write the tables and pictures of all finished runs below a folder, and one "
        "HTML page with all of them. For the folder of a sweep, which may still be running, write "
        "the best recipes for `run --method`, all trials, the importance of keys, and the cost of "
        "scores."
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=folder,
        help="the folder of `run --out`, or of a sweep",
    )
    parser.add_argument(
        "--to", metavar="DIR", type=folder, help="where to write (default: FOLDER/report)"
    )
    add_list(
        parser,
        "--first",
        metavar="METHOD",
        help="methods to show first (default: radial-vcl gaussian-vcl)",
    )
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="also store the runs beside each report, in a few small files that can be committed; "
        "`report` reads them like the runs",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the modules that files in FOLDER name as their track; this runs code that the "
        "author of FOLDER has written",
    )
    add_data_dir(parser)
    sweeps = parser.add_argument_group("options for sweeps")
    sweeps.add_argument(
        "--top",
        metavar="N",
        type=count,
        help="number of configurations per method to write as recipes (default: 1)",
    )
    sweeps.add_argument(
        "--by",
        metavar="SCORE",
        help="rank the configurations by this score of their runs, such as average_nll (default: "
        "the objective of the sweep)",
    )
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from vcl_radial.sweeps.folder_report import report

    report(
        options.folder,
        options.to,
        first=options.first,
        evidence=options.evidence,
        trust=options.trust,
        data_dir=options.data_dir,
        top=options.top,
        by=options.by,
    )
    return DONE
