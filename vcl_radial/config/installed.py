"""What installed packages offer: methods, by their entry points. Nothing of theirs is imported."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path

from vcl_radial.errors import UserError

GROUP = "vcl_radial.strategies"
"""The entry-point group in which a package offers a strategy class under a name."""


@dataclass(frozen=True)
class Offer:
    """A method of an installed package.

    Attributes:
        name: of the strategy, and of its recipe.
        target: "package.module:Class".
        package: that offers it, with its version.
        recipe: the file NAME.toml beside the class's module; None if there is none.
    """

    name: str
    target: str
    package: str
    recipe: Path | None


def offers() -> list[Offer]:
    """All that there are, by name."""
    found = {_offer(point) for point in _points(tuple(sys.path))}
    return sorted(found, key=lambda offer: (offer.name, offer.package))


def offer(name: str) -> Offer | None:
    """The method of that name, or None.

    Raises:
        UserError: several packages offer one.
    """
    found = [each for each in offers() if each.name == name]
    if len({each.target for each in found}) > 1:
        classes = " or ".join(f"{each.target!r} ({each.package})" for each in found)
        raise UserError(
            f"{name!r}: several installed packages offer it; write strategy = {classes} in a recipe"
        )
    return found[0] if found else None


@lru_cache(maxsize=1)  # it reads a file of every package, and each run of a sweep asks
def _points(folders: tuple[str, ...]) -> EntryPoints:
    """The entry points of packages in these folders, those on the import path."""
    return entry_points(group=GROUP)


def _offer(point: EntryPoint) -> Offer:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown package"
    module = point.value.partition(":")[0].strip()
    paths = (folder / f"{point.name}.toml" for folder in _folders(module))
    recipe = next((path for path in paths if path.is_file()), None)
    return Offer(point.name, point.value, package, recipe)


def _folders(module: str) -> list[Path]:
    """Where a module's file lies; the folder of the module itself too, if it is a package."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)  # of what is at the top: below, it would import what is above
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin).parent] if spec.origin else []
    inside = [Path(place, *inner) for place in spec.submodule_search_locations]
    return [*inside, *(path.parent for path in inside if inner)]
