"""Find methods of installed packages by their entry points, without importing them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path

from vcl_radial.errors import UserError

GROUP = "vcl_radial.methods"
"""The entry-point group of strategy classes by name."""


@dataclass(frozen=True)
class Offer:
    """A method of an installed package.

    Attributes:
        name: name of the strategy and of its recipe.
        target: "package.module:Class".
        package: name and version of the package.
        recipe: the file NAME.toml beside the class's module; None if it is missing.
    """

    name: str
    target: str
    package: str
    recipe: Path | None


def offers() -> list[Offer]:
    """All offers, sorted by name."""
    unique = {_offer(point) for point in _points(tuple(sys.path))}
    return sorted(unique, key=lambda offer: (offer.name, offer.package))


def offer(name: str) -> Offer | None:
    """The offer of this name, or None.

    Raises:
        UserError: several packages offer a method of this name.
    """
    matches = [other for other in offers() if other.name == name]
    if len({match.target for match in matches}) > 1:
        classes = " or ".join(f"{match.target!r} ({match.package})" for match in matches)
        raise UserError(
            f"{name!r}: several installed packages offer it; write strategy = {classes} in a recipe"
        )
    return matches[0] if matches else None


@lru_cache(maxsize=1)  # it reads a file of every package, and each run of a sweep calls it
def _points(folders: tuple[str, ...]) -> EntryPoints:
    """The entry points of packages in these folders, which are the import path."""
    return entry_points(group=GROUP)


def _offer(point: EntryPoint) -> Offer:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown package"
    module = point.value.partition(":")[0].strip()
    paths = (folder / f"{point.name}.toml" for folder in _folders(module))
    recipe = next((path for path in paths if path.is_file()), None)
    return Offer(point.name, point.value, package, recipe)


def _folders(module: str) -> list[Path]:
    """The folder of a module's file; also the module's folder, if it is a package."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)  # for an inner module, `find_spec` would import its parents
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin).parent] if spec.origin else []
    inside = [Path(folder, *inner) for folder in spec.submodule_search_locations]
    return [*inside, *(path.parent for path in inside if inner)]
