"""`vcl-radial list`: what is shipped, by the command that takes it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands
    from vcl_radial.installed import Offer


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser("list", help="list the benchmarks, methods and sweeps")
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.runs import catalogue

    _show("Benchmarks", _shipped("benchmark"))
    _show("Methods", _shipped("method"))
    if installed := catalogue.installed():
        _show("Methods of installed packages", list(map(_offered, installed)))
    _show("Sweeps, for `sweep`", _shipped("benchmark", "sweeps"))
    _show("Benchmarks for `regress`", _shipped("benchmark", "regression"))
    _show("Methods for `regress`", _shipped("method", "regression"))
    _show("Methods for `refer`", _shipped("method", "referral"))
    return DONE


def _shipped(kind: str, room: str = "") -> list[tuple[str, str]]:
    """Names and descriptions of the TOMLs of a folder."""
    from vcl_radial.runs import catalogue

    paths = sorted((catalogue.folder(kind) / room).glob("*.toml"))
    return [(path.stem, catalogue.load(kind, str(path)).description) for path in paths]


def _show(title: str, lines: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in lines)
    print(f"{title}:")
    for name, words in lines:
        print(f"  {name:{width}}  {words}")


def _offered(offer: Offer) -> tuple[str, str]:
    """The line of a method that an installed package offers."""
    from vcl_radial.errors import UserError
    from vcl_radial.runs import catalogue

    if offer.recipe is None:
        words = f'a strategy without a recipe: write one with strategy = "{offer.name}"'
    else:
        try:
            words = catalogue.load("method", str(offer.recipe)).description
        except UserError as error:
            words = str(error)
    return offer.name, f"{words} ({offer.package})"
