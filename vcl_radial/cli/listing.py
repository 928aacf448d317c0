"""`vcl-radial list`: what is shipped, by track."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE

if TYPE_CHECKING:
    from vcl_radial.cli.arguments import Commands
    from vcl_radial.installed import Offer
    from vcl_radial.runs.catalogue import Entry


def add(commands: Commands) -> None:
    """The command and its arguments."""
    parser = commands.add_parser(
        "list",
        help="list the benchmarks, methods and sweeps",
        description="List the benchmarks and methods of each track, and the sweeps.",
    )
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.runs import catalogue, tracks

    benchmarks = [catalogue.load("benchmark", name) for name in catalogue.names("benchmark")]
    for track in tracks.names():
        of_track = [entry for entry in benchmarks if entry.track == track]
        _show(f"Benchmarks ({track})", _lines(of_track))
        methods = catalogue.names("method", track)
        _show(f"Methods ({track})", _lines([catalogue.load("method", n, track) for n in methods]))
    if installed := catalogue.installed():
        _show("Methods of installed packages", list(map(_offered, installed)))
    _show("Sweeps", _lines([catalogue.load("sweep", name) for name in catalogue.names("sweep")]))
    return DONE


def _lines(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Names and descriptions of TOMLs."""
    return [(entry.name, entry.description) for entry in entries]


def _show(title: str, lines: list[tuple[str, str]]) -> None:
    if not lines:
        return
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
