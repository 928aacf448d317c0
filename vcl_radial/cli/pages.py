"""`vcl-radial pages`: pages whose numbers are computed from CSV files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, FAILED

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "pages",
        help="pages of text whose numbers are computed from runs.csv",
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


def _pages(options: argparse.Namespace) -> int:
    from vcl_radial.report import pages

    templates = [template for path in options.paths for template in pages.templates(path)]
    one = len(templates) == 1
    if options.check:
        lines = pages.differences(templates)
        made = "page is as its files make it" if one else "pages are as their files make them"
        print("\n".join(lines) if lines else f"{len(templates)} {made}")
        return FAILED if lines else DONE
    current = "page is up to date" if one else "pages are up to date"
    changed = pages.write(templates)
    print("\n".join(map(str, changed)) if changed else f"{len(templates)} {current}")
    return DONE
