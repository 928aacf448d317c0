"""Finding the class of a method by what a recipe calls it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import vcl_radial.methods
from vcl_radial.config import outside
from vcl_radial.config.installed import offer, offers
from vcl_radial.errors import UserError

if TYPE_CHECKING:
    from vcl_radial.methods.base import Method

_NOT_METHODS = {
    *("base", "carried", "exact_head", "fixed_features", "laplace", "loop", "natural_gradient"),
    *("modes", "options", "penalties", "quadratic", "registry", "serves", "tasks"),
}
"""What is in the folder beside the methods."""


def built_in() -> list[str]:
    """The names of the suite's own methods: each is a file of `vcl_radial.methods`."""
    modules = pkgutil.iter_modules(vcl_radial.methods.__path__)
    return sorted(module.name for module in modules if module.name not in _NOT_METHODS)


def installed() -> list[str]:
    """The names under which installed packages offer methods, but for those that are built in."""
    return sorted({offer.name for offer in offers()} - set(built_in()))


def names() -> list[str]:
    """All names that `find_method` knows: built in, and of installed packages."""
    return sorted([*built_in(), *installed()])


def find_method(name: str) -> type[Any]:
    """The class that a recipe calls `strategy = "name"`.

    Args:
        name: of a built-in method, of an entry point in the group `vcl_radial.strategies` of an
            installed package, or "package.module:Class".

    Returns:
        A subclass of `Method`, or of `vcl_radial.strategies.ContinualStrategy`.

    Raises:
        UserError: there is none, it cannot be imported, it is neither, or it overrides a method of
            the suite's with one that does not take the same arguments.
    """
    target = _target(name)
    if target is None:
        return built_in_class(name)
    found = outside.find("strategy", name, None if target == name else target)
    from vcl_radial.methods.options import method_class_of

    if not inspect.isclass(found) or method_class_of(found) is None:
        raise UserError(
            f"strategy = {name!r} is neither a vcl_radial.methods.base.Method nor a "
            "vcl_radial.strategies.ContinualStrategy"
        )
    outside.check_overrides(found)
    return found


def built_in_class(name: str) -> type[Method]:
    """The one method that a file of `vcl_radial.methods` defines."""
    from vcl_radial.methods.base import Method

    module = importlib.import_module(f"{vcl_radial.methods.__name__}.{name}")
    (found,) = (
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Method)
        and value.__module__ == module.__name__
    )
    return found


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
