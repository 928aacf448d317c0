"""Packages whose names are imported when somebody asks for them, not with the package.

So that a light module of a room, say the names of its data sets, is read without PyTorch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def attributes(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package, which imports on demand what it imports for type checkers.

    What is exported so is said once, in `from ... import ...` under `if TYPE_CHECKING:`.

    Args:
        package: its name.
    """

    @cache
    def sources() -> dict[str, str | None]:
        tree = ast.parse(Path(sys.modules[package].__file__ or "").read_text(encoding="utf-8"))
        blocks = (node.body for node in tree.body if isinstance(node, ast.If))
        imports = (node for body in blocks for node in body if isinstance(node, ast.ImportFrom))
        return {alias.name: node.module for node in imports for alias in node.names}

    def getattr_of_package(name: str) -> Any:
        # What Python asks every package for is not worth a look at the file.
        module = None if name.startswith("__") else sources().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_of_package
