"""`python -m reports`, in a checkout: figures of the papers, the price of shapes, the pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from vcl_radial.cli import run_guarded
from vcl_radial.cli.arguments import Parser
from vcl_radial.config.outside import consent
from vcl_radial.system.quiet import quiet

PROGRAM = "python -m reports"

COMMANDS = {
    "central": "reports.central.page",
    "leaderboard": "reports.leaderboard",
    "pages": "reports.pages_command",
    "pictures": "reports.pictures",
    "price": "reports.price.command",
}
"""Modules of commands by their first word; every other word is a figure of the papers."""


def parser_for(arguments: Sequence[str]) -> tuple[Parser, Sequence[str]]:
    """The parser of a command, and the arguments for it."""
    name = arguments[0] if arguments else ""
    with quiet():  # hide warnings of imports
        module = import_module(COMMANDS.get(name, "reports.papers.command"))
    if name not in COMMANDS:
        return module.parser(PROGRAM), arguments
    return module.parser(f"{PROGRAM} {name}"), arguments[1:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0 done, 1 failed, 2 misused."""
    return run_guarded("reports", lambda: _main(sys.argv[1:] if arguments is None else arguments))


def _main(arguments: Sequence[str]) -> int:
    parser, remaining = parser_for(arguments)
    options = parser.parse_args(remaining)
    # The tracks of the prunings are named in run folders as `reports.seeds.pruning...:Class`.
    with consent(granted=True):
        code: int = options.command(options)
    return code


if __name__ == "__main__":
    sys.exit(main())
