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
        help="with templates in it or below, or a template",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print what differs, and fail if any"
    )
    parser.set_defaults(command=_pages)
    return parser


def _pages(options: argparse.Namespace) -> int:
    templates = [template for path in options.paths for template in pages.templates(path)]
    single = len(templates) == 1
    if options.check:
        lines = pages.differences(templates)
        made = "page is as its files make it" if single else "pages are as their files make them"
        print("\n".join(lines) if lines else f"{len(templates)} {made}")
        return FAILED if lines else DONE
    current = "page is up to date" if single else "pages are up to date"
    changed = pages.write(templates)
    print("\n".join(map(str, changed)) if changed else f"{len(templates)} {current}")
    return DONE
