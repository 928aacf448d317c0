"""The variational families by their names in recipes, and the user's own classes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TypeVar

import vcl_radial.posteriors
from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.posteriors.base import Family, Posterior

Kind = TypeVar("Kind", bound=Family)


@cache
def all_families() -> Mapping[str, type[Family]]:
    """The families of the suite by name: every class with a `name` in this package's modules."""
    package = vcl_radial.posteriors
    modules = (
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    )
    classes = (value for module in modules for value in vars(module).values())
    return {
        cls.name: cls
        for cls in classes
        if inspect.isclass(cls) and issubclass(cls, Family) and "name" in vars(cls)
    }


def families() -> dict[str, type[Posterior]]:
    """The location-scale families of the suite by name."""
    return {name: cls for name, cls in all_families().items() if issubclass(cls, Posterior)}


def family(name: str | type[Posterior]) -> type[Posterior]:
    """The location-scale family that a recipe calls `posterior = "name"`.

    Args:
        name: one of `families()`, "package.module:Class", or the class itself.

    Raises:
        UserError: No family has this name, it cannot be imported, or the class lacks methods of a
            `Posterior`.
    """
    if isinstance(name, str) and name in families():
        return families()[name]
    if isinstance(name, str) and not outside.is_named(name):
        raise UserError(
            f"posterior = {name!r} is not known: choose from {', '.join(families())}, or name your "
            "own as 'package.module:Class'"
        )
    cls = outside.find("posterior", name) if isinstance(name, str) else name
    if not (inspect.isclass(cls) and issubclass(cls, Posterior)):
        raise UserError(f"posterior = {name!r} is not a vcl_radial.posteriors.Posterior")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise UserError(f"posterior = {name!r} lacks {missing}")
    outside.check_overrides(cls)
    return cls


def name_of(cls: type[Family]) -> str:
    """The family's name in a recipe, or the name of the user's own class."""
    return str(vars(cls).get("name", cls.__qualname__))
