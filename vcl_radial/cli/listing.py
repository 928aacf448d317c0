"""`vcl-radial list`: the benchmarks, methods and sweeps, the page of one, or models of a folder."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from vcl_radial.cli.arguments import DONE
from vcl_radial.errors import UserError, visible

if TYPE_CHECKING:
    from vcl_radial.config.installed import Offer


def add(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments."""
    parser.description = (
        "List the benchmarks and methods of each track, and the sweeps. Of one method: its "
        "equation, its source, what it carries, its options with their defaults, and its tracks. "
        "For a folder of runs, list the models that they keep, each with its tasks and the parents "
        "that it was updated from."
    )
    parser.add_argument(
        "name",
        metavar="NAME|WORD|FOLDER",
        nargs="?",
        help="a method, benchmark or sweep; or a word, for the lines that have it; or the folder "
        "of a run or of runs (one that has the name of a method is ./NAME)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON (not of a folder)")
    parser.set_defaults(command=_list)


def _list(options: argparse.Namespace) -> int:
    from vcl_radial.cli.about import about, lines, names

    name: str | None = options.name
    if name is not None and not name.strip():
        raise UserError("the name is empty; leave it out to list all")
    if name in names():
        page = about(str(name))
        print(json.dumps(asdict(page), indent=2) if options.json else "\n".join(lines(page)))
        return DONE
    if name is not None and _is_folder(name):
        if options.json:
            raise UserError("--json is not for a folder of runs; leave it out", at=name)
        from vcl_radial.runs.updating import model_lines

        for line in model_lines(Path(name)):
            print(visible(line))
        return DONE
    tables = {title: _with(name or "", rows) for title, rows in _tables().items()}
    if not any(tables.values()):
        near = get_close_matches(str(name), names(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(
            "is no folder, and no method, benchmark or sweep has it in its name or description; "
            f"{hint}`vcl-radial list` lists all",
            at=visible(str(name)),
        )
    if options.json:
        print(json.dumps(tables, indent=2))
        return DONE
    for title, rows in tables.items():
        _show(title, rows)
    return DONE


def _is_folder(name: str) -> bool:
    """Whether there is a folder; also of a text that is too long for a path."""
    try:
        return Path(name).is_dir()
    except OSError:
        return False


def _tables() -> dict[str, Mapping[str, str]]:
    """The descriptions of everything by its name, under the title of its kind and track."""
    from vcl_radial.runs import catalogue, tracks

    result: dict[str, Mapping[str, str]] = {}
    for track in tracks.names():
        result[f"Benchmarks ({track})"] = catalogue.list_benchmarks(track)
        result[f"Methods ({track})"] = catalogue.list_methods(track)
    result["Methods of installed packages"] = dict(map(_describe, catalogue.installed()))
    return result | {"Sweeps": catalogue.list_sweeps()}


def _with(word: str, rows: Mapping[str, str]) -> dict[str, str]:
    """The rows whose name or description has a word, in any case."""
    return {name: text for name, text in rows.items() if word.lower() in f"{name} {text}".lower()}


def _show(title: str, descriptions: Mapping[str, str]) -> None:
    if not descriptions:
        return
    width = max(map(len, descriptions))
    print(f"{title}:")
    for name, description in descriptions.items():
        print(f"  {name:{width}}  {description}")


def _describe(offer: Offer) -> tuple[str, str]:
    """The name and description of a method of an installed package."""
    from vcl_radial.runs import catalogue

    if offer.recipe is None:
        description = f'a strategy without a recipe: write one with strategy = "{offer.name}"'
    else:
        try:
            description = catalogue.load("method", str(offer.recipe)).description
        except UserError as error:
            description = str(error)
    return offer.name, f"{description} ({offer.package})"
