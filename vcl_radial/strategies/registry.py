"""Finding a strategy class by what a recipe calls it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from typing import Any

import vcl_radial.strategies
from vcl_radial import outside
from vcl_radial.errors import UserError
from vcl_radial.installed import offer, offers
from vcl_radial.strategies.base import ContinualStrategy

_NOT_METHODS = {
    "base",
    "callbacks",
    "options",
    "registry",
    "schedules",
    "scores",
    "task_model",
    "upkeep",
}
"""What is in the folder beside the methods."""


def built_in() -> list[str]:
    """The names of the suite's own methods: each is a file of `vcl_radial.strategies`."""
    modules = pkgutil.iter_modules(vcl_radial.strategies.__path__)
    return sorted(module.name for module in modules if module.name not in _NOT_METHODS)


def installed() -> list[str]:
    """The names under which installed packages offer methods, but for those that are built in."""
    return sorted({offer.name for offer in offers()} - set(built_in()))


def names() -> list[str]:
    """All names that `find_strategy` knows: built in, and of installed packages."""
    return sorted([*built_in(), *installed()])


def find_strategy(name: str) -> type[ContinualStrategy]:
    """The class that a recipe calls `strategy = "name"`.

    Args:
        name: of a built-in method, of an entry point in the group `vcl_radial.strategies` of an
            installed package, or "package.module:Class".

    Raises:
        UserError: there is none, it cannot be imported, or it is not a `ContinualStrategy`.
    """
    if outside.is_named(name):
        found = outside.find("strategy", name)
    elif name in built_in():
        found = _the_one_of(f"vcl_radial.strategies.{name}")
    elif (offered := offer(name)) is not None:
        found = outside.find("strategy", name, offered.target)
    else:
        nearest = get_close_matches(name, names(), 1, cutoff=0.0)[0]
        others = f"; installed: {', '.join(installed())}" if installed() else ""
        raise UserError(
            f"strategy = {name!r} is not known: the nearest is {nearest!r} (built in: "
            f"{', '.join(built_in())}{others}; your own: 'package.module:Class')"
        )
    if not (inspect.isclass(found) and issubclass(found, ContinualStrategy)):
        raise UserError(f"strategy = {name!r} is not a vcl_radial.strategies.ContinualStrategy")
    return found


def _the_one_of(module_name: str) -> Any:
    (found,) = (
        value
        for value in vars(importlib.import_module(module_name)).values()
        if inspect.isclass(value)
        and issubclass(value, ContinualStrategy)
        and value.__module__ == module_name
    )
    return found
