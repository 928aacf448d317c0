"""Finding a strategy class by what a recipe calls it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import vcl_radial.strategies
from vcl_radial import outside
from vcl_radial.errors import UserError
from vcl_radial.installed import offer, offers
from vcl_radial.quiet import quiet
from vcl_radial.source import Absent, NotReadable, classes_of, find_class
from vcl_radial.strategies.options import Signature, read

if TYPE_CHECKING:
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
    with quiet():  # Avalanche imports much
        from vcl_radial.strategies.base import ContinualStrategy

    target = _target(name)
    if target is None:
        found = _the_one_of(f"{vcl_radial.strategies.__name__}.{name}")
    else:
        found = outside.find("strategy", name, None if target == name else target)
    if not (inspect.isclass(found) and issubclass(found, ContinualStrategy)):
        raise _no_strategy(name)
    return found


def look_up(name: str) -> Signature | None:
    """What the class takes that a recipe calls `strategy = "name"`; nothing is imported.

    Returns:
        Its signature; None where only an import can tell.

    Raises:
        UserError: there is none, its file is not Python, or it is not a `ContinualStrategy`.
    """
    target = _target(name)
    if target is None:
        sources = classes_of(f"{vcl_radial.strategies.__name__}.{name}")
        return next(filter(None, map(read, sources)))
    node = outside.look_up("strategy", name, None if target == name else target)
    if node is None:
        return None
    if isinstance(node, ast.FunctionDef):
        raise _no_strategy(name)
    try:
        signature = read(find_class(*target.split(":", 1)))
    except (NotReadable, Absent, SyntaxError):  # of what it is derived from: the import will say so
        return None
    if signature is None:
        raise _no_strategy(name)
    return signature


def _target(name: str) -> str | None:
    """`package.module:Class` of a strategy, or None of a built-in one.

    Raises:
        UserError: there is no strategy of that name.
    """
    if outside.is_named(name):
        return name
    if name in built_in():
        return None
    if (offered := offer(name)) is not None:
        return offered.target
    nearest = get_close_matches(name, names(), 1, cutoff=0.0)[0]
    others = f"; installed: {', '.join(installed())}" if installed() else ""
    raise UserError(
        f"strategy = {name!r} is not known: the nearest is {nearest!r} (built in: "
        f"{', '.join(built_in())}{others}; your own: 'package.module:Class')"
    )


def _no_strategy(name: str) -> UserError:
    return UserError(f"strategy = {name!r} is not a vcl_radial.strategies.ContinualStrategy")


def _the_one_of(module_name: str) -> Any:
    from vcl_radial.strategies.base import ContinualStrategy

    (found,) = (
        value
        for value in vars(importlib.import_module(module_name)).values()
        if inspect.isclass(value)
        and issubclass(value, ContinualStrategy)
        and value.__module__ == module_name
    )
    return found
