"""Find the class of a method by its name in a recipe."""

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
    *("base", "carried", "exact_head", "fixed_features", "iterates", "labels", "laplace", "modes"),
    *("natural_gradient", "options", "penalties", "quadratic", "registry", "serves", "tasks"),
    "traits",
}
"""The modules of `vcl_radial.methods` that do not define a method."""


def built_in() -> list[str]:
    """The names of the suite's methods: each is a file of `vcl_radial.methods`."""
    modules = pkgutil.iter_modules(vcl_radial.methods.__path__)
    return sorted(module.name for module in modules if module.name not in _NOT_METHODS)


def installed() -> list[str]:
    """The names of methods from the entry points of installed packages, without built-in names."""
    return sorted({offer.name for offer in offers()} - set(built_in()))


def names() -> list[str]:
    """All names that `find_method` knows: built-in methods and those of installed packages."""
    return sorted([*built_in(), *installed()])


def find_method(name: str) -> type[Any]:
    """The class that a recipe calls `strategy = "name"`.

    Args:
        name: name of a built-in method, or of an installed package's entry point in the group
            `vcl_radial.methods`, or "package.module:Class".

    Returns:
        A subclass of `Method`, or of `vcl_radial.integrations.avalanche.ContinualStrategy`.

    Raises:
        UserError: the class does not exist, cannot be imported, is not a method, or overrides a
            method with different arguments.
    """
    target = _target(name)
    if target is None:
        return built_in_class(name)
    cls = outside.find("strategy", name, None if target == name else target)
    from vcl_radial.methods.options import method_class_of

    if not inspect.isclass(cls) or method_class_of(cls) is None:
        raise UserError(
            f"strategy = {name!r} is neither a vcl_radial.methods.base.Method nor a "
            "vcl_radial.integrations.avalanche.ContinualStrategy"
        )
    outside.check_overrides(cls)
    return cls


def built_in_class(name: str) -> type[Method]:
    """The only method that a file of `vcl_radial.methods` defines."""
    from vcl_radial.methods.base import Method

    module = importlib.import_module(f"{vcl_radial.methods.__name__}.{name}")
    (cls,) = (
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Method)
        and value.__module__ == module.__name__
    )
    return cls


def _target(name: str) -> str | None:
    """`package.module:Class` of a strategy, or None if it is built in.

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
    also = f"; installed: {', '.join(installed())}" if installed() else ""
    raise UserError(
        f"strategy = {name!r} is not known: the nearest is {nearest!r} (built in: "
        f"{', '.join(built_in())}{also}; your own: 'package.module:Class')"
    )
