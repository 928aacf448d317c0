"""Packages whose names are imported when somebody asks for them, not with the package.

So that a light module of a room, say the names of its data sets, is read without PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attributes(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, which imports what it exports on demand.

    Args:
        package: its name.
        modules: the names that are exported, by the modules of the package that define them.
    """
    sources = {name: module for module, names in modules.items() for name in names}

    def getattr_of_package(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{sources[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_of_package
