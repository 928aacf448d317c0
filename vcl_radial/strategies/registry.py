"""Finding a strategy class by what a recipe calls it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from difflib import get_close_matches
from pathlib import Path

import vcl_radial.strategies
from vcl_radial.errors import UserError
from vcl_radial.strategies.base import ContinualStrategy

_NOT_METHODS = {"base", "registry", "scores", "task_model"}


def built_in() -> list[str]:
    """The names of the suite's own methods: each is a file of `vcl_radial.strategies`."""
    modules = pkgutil.iter_modules(vcl_radial.strategies.__path__)
    return sorted(module.name for module in modules if module.name not in _NOT_METHODS)


def find_strategy(name: str) -> type[ContinualStrategy]:
    """The class for `strategy = "name"` (built in) or `strategy = "package.module:Class"`.

    Raises:
        UserError: there is none, it cannot be imported, or it is not a `ContinualStrategy`.
    """
    if ":" in name:
        module_name, class_name = name.split(":", 1)
        # As with `python -m`: a user's file in the folder at work is found without installing it.
        if "" not in sys.path and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
    elif name in built_in():
        module_name, class_name = f"vcl_radial.strategies.{name}", None
    else:
        nearest = get_close_matches(name, built_in(), 1, cutoff=0.0)[0]
        raise UserError(
            f"strategy = {name!r} is not known: the nearest is {nearest!r} (built in: "
            f"{', '.join(built_in())}; your own: 'package.module:Class')"
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may fail in any way
        raise UserError(f"strategy = {name!r}: cannot import {module_name!r}: {error}") from error
    if class_name is not None:
        found = getattr(module, class_name, None)
        if found is None:
            raise UserError(f"strategy = {name!r}: {module_name!r} has no class {class_name!r}")
    else:
        (found,) = (
            value
            for value in vars(module).values()
            if inspect.isclass(value)
            and issubclass(value, ContinualStrategy)
            and value.__module__ == module_name
        )
    if not (inspect.isclass(found) and issubclass(found, ContinualStrategy)):
        raise UserError(f"strategy = {name!r} is not a vcl_radial.strategies.ContinualStrategy")
    return found
