"""`vcl-radial list`: list benchmarks, methods and sweeps by track, or the models in a folder."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE, folder
from vcl_radial.errors import visible

if TYPE_CHECKING:
    from vcl_radial.config.installed import Offer


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "List the benchmarks and methods of each track, and the sweeps. For a folder of runs, list "
        "the models that they keep, each with its tasks and the parents that it was updated from."
    )
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=folder, help="the folder of a run, or of runs"
    )
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.runs import catalogue, tracks

    if options.folder is not None:
        from vcl_radial.runs.updating import model_lines

        for line in model_lines(options.folder):
            print(visible(line))
        return DONE
    for track in tracks.names():
        _show(f"Benchmarks ({track})", catalogue.list_benchmarks(track))
        _show(f"Methods ({track})", catalogue.list_methods(track))
    _show("Methods of installed packages", dict(map(_describe, catalogue.installed())))
    _show("Sweeps", catalogue.list_sweeps())
    return DONE


def _show(title: str, descriptions: Mapping[str, str]) -> None:
    if not descriptions:
        return
    width = max(map(len, descriptions))
    print(f"{title}:")
    for name, description in descriptions.items():
        print(f"  {name:{width}}  {description}")


def _describe(offer: Offer) -> tuple[str, str]:
    """The name and description of a method of an installed package."""
    from vcl_radial.errors import UserError
    from vcl_radial.runs import catalogue

    if offer.recipe is None:
        description = f'a strategy without a recipe: write one with strategy = "{offer.name}"'
    else:
        try:
            description = catalogue.load("method", str(offer.recipe)).description
        except UserError as error:
            description = str(error)
    return offer.name, f"{description} ({offer.package})"
