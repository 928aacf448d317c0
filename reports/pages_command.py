"""`python -m reports pages`: pages whose numbers are computed from CSV files."""

from __future__ import annotations

import argparse
from pathlib import Path

from reports import pages
from vcl_radial.cli.arguments import DONE, FAILED, Parser


def parser(program: str) -> Parser:
    """The command's arguments."""
    parser = Parser(
        prog=program,
        description="Write README.md of every template README.md.jinja below a folder: its means, "
        "spreads and paired differences are computed from the CSV files beside it.",
    )
    parser.add_argument(
        "paths",
        metavar="FOLDER|FILE",
        nargs="+",
        type=Path,
        help="a template, or a folder with templates in it or below it",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; print the differences, and fail if there are any",
    )
    parser.set_defaults(command=_pages)
    return parser


def _pages(options: argparse.Namespace) -> int:
    templates = [template for path in options.paths for template in pages.templates(path)]
    lines = pages.differences(templates) if options.check else pages.write(templates)
    print("\n".join(map(str, lines)) or f"pages that are up to date: {len(templates)}")
    return FAILED if options.check and lines else DONE
