"""Finding a strategy class by what a recipe calls it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import vcl_radial.strategies
from vcl_radial.errors import UserError
from vcl_radial.strategies.base import ContinualStrategy

GROUP = "vcl_radial.strategies"
"""The entry-point group in which an installed package offers methods of its own."""

_NOT_METHODS = {"base", "callbacks", "registry", "scores", "task_model"}


def built_in() -> list[str]:
    """The names of the suite's own methods: each is a file of `vcl_radial.strategies`."""
    modules = pkgutil.iter_modules(vcl_radial.strategies.__path__)
    return sorted(module.name for module in modules if module.name not in _NOT_METHODS)


def installed() -> list[str]:
    """The names under which installed packages offer methods, but for those that are built in."""
    return sorted({point.name for point in entry_points(group=GROUP)} - set(built_in()))


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
    if ":" in name:
        # As with `python -m`: a user's file in the folder at work is found without installing it.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        found = _named(name, name)
    elif name in built_in():
        found = _the_one_of(f"vcl_radial.strategies.{name}")
    elif name in installed():
        found = _named(name, _entry_point(name).value)
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


def _entry_point(name: str) -> EntryPoint:
    points = list(entry_points(group=GROUP, name=name))
    if len({point.value for point in points}) > 1:
        raise UserError(
            f"strategy = {name!r}: several installed packages offer it; choose one of "
            f"{', '.join(sorted(repr(point.value) for point in points))}"
        )
    return points[0]


def _named(name: str, target: str) -> Any:
    """What `package.module:Class` stands for; `name` is what the user wrote for it."""
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may fail in any way
        raise UserError(f"strategy = {name!r}: cannot import {module_name!r}: {error}") from error
    found = getattr(module, class_name, None)
    if found is None:
        raise UserError(f"strategy = {name!r}: {module_name!r} has no class {class_name!r}")
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
