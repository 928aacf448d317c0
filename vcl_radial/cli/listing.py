"""`vcl-radial list`: the benchmarks and methods."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser("list", help="list the benchmarks and methods")
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.experiments import catalogue

    for kind, title in (("benchmark", "Benchmarks"), ("method", "Methods")):
        names = catalogue.names(kind)
        width = max(map(len, names))
        print(f"{title}:")
        for name in names:
            print(f"  {name:{width}}  {catalogue.load(kind, name).description}")
    return DONE
