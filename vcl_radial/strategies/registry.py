"""Finding a strategy class by what a recipe calls it."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import vcl_radial.strategies
from vcl_radial.errors import UserError
from vcl_radial.installed import offer, offers
from vcl_radial.strategies.base import ContinualStrategy
from vcl_radial.strategies.faults import why_not_imported

_NOT_METHODS = {
    "base",
    "callbacks",
    "faults",
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
    if ":" in name:
        # As with `python -m`: a user's file in the folder at work is found without installing it.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        found = _named(name, name)
    elif name in built_in():
        found = _the_one_of(f"vcl_radial.strategies.{name}")
    elif (offered := offer(name)) is not None:
        found = _named(name, offered.target)
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


def source_checksum(name: str) -> str | None:
    """A checksum of the files that a strategy from outside is written in; None for a built-in one.

    Files of classes that it is derived from count, but for those of the suite, Avalanche and
    Python. What they import does not.

    Raises:
        UserError: as `find_strategy`, or a file cannot be read.
    """
    if name in built_in():
        return None
    modules = {each.__module__ for each in find_strategy(name).__mro__}
    content = hashlib.sha256()
    for module in sorted(modules):
        root = module.partition(".")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None or root in {"vcl_radial", "avalanche", *sys.stdlib_module_names}:
            continue
        try:
            content.update(Path(file).read_bytes())
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    return content.hexdigest()[:16]


def _named(name: str, target: str) -> Any:
    """What `package.module:Class` stands for; `name` is what the user wrote for it."""
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise UserError(
            f"strategy = {name!r}: cannot import {module_name!r}: {why_not_imported(error)}"
            + _where_sought(module_name, error)
        ) from error
    found = getattr(module, class_name, None)
    if found is None:
        raise UserError(f"strategy = {name!r}: {module_name!r} has no class {class_name!r}")
    return found


def _where_sought(module_name: str, error: BaseException) -> str:
    """What to do where a user's module itself is not found."""
    if not isinstance(error, ModuleNotFoundError) or not module_name.startswith(error.name or "/"):
        return ""
    if module_name.endswith(".py"):
        return f"; write it without .py: {module_name.removesuffix('.py')!r}"
    return "; run the command in the folder of its file, or name that folder in PYTHONPATH"


def _the_one_of(module_name: str) -> Any:
    (found,) = (
        value
        for value in vars(importlib.import_module(module_name)).values()
        if inspect.isclass(value)
        and issubclass(value, ContinualStrategy)
        and value.__module__ == module_name
    )
    return found
