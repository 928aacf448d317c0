"""`vcl-radial list`: the benchmarks and methods."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands
    from vcl_radial.installed import Offer


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser("list", help="list the benchmarks and methods")
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.experiments import catalogue

    for kind, title in (("benchmark", "Benchmarks"), ("method", "Methods")):
        names = catalogue.names(kind)
        _show(title, [(name, catalogue.load(kind, name).description) for name in names])
    if installed := catalogue.installed():
        _show("Methods of installed packages", list(map(_offered, installed)))
    return DONE


def _show(title: str, lines: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in lines)
    print(f"{title}:")
    for name, words in lines:
        print(f"  {name:{width}}  {words}")


def _offered(offer: Offer) -> tuple[str, str]:
    """The line of a method that an installed package offers."""
    from vcl_radial.errors import UserError
    from vcl_radial.experiments import catalogue

    if offer.recipe is None:
        words = f'a strategy without a recipe: write one with strategy = "{offer.name}"'
    else:
        try:
            words = catalogue.load("method", str(offer.recipe)).description
        except UserError as error:
            words = str(error)
    return offer.name, f"{words} ({offer.package})"
