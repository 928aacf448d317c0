"""Classes from outside the suite, which a recipe names as `package.module:Class`."""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError


def find(key: str, name: str, target: str | None = None) -> Any:
    """What a recipe names by `key = "package.module:Class"`.

    Args:
        key: of the recipe, for what is said.
        name: what the user wrote there.
        target: `package.module:Class`, where the name stands for that.

    Raises:
        UserError: the module cannot be imported, or has nothing of that name.
    """
    # As with `python -m`: a user's file in the folder at work is found without installing it.
    if target is None and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    module_name, _, class_name = (target or name).partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way
        raise UserError(
            f"{key} = {name!r}: cannot import {module_name!r}: {_why_not(error)}"
            + _where_sought(module_name, error)
        ) from error
    found = getattr(module, class_name, None)
    if found is None:
        raise UserError(f"{key} = {name!r}: {module_name!r} has no class {class_name!r}")
    return found


def checksum(*classes: type[Any]) -> str:
    """A checksum of the files that classes are written in.

    Files of classes that they are derived from count, but for those of the suite, Avalanche and
    Python. What they import does not.

    Raises:
        UserError: a file cannot be read.
    """
    content = hashlib.sha256()
    for module in sorted({each.__module__ for own in classes for each in own.__mro__}):
        root = module.partition(".")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None or root in {"vcl_radial", "avalanche", *sys.stdlib_module_names}:
            continue
        try:
            content.update(Path(file).read_bytes())
        except OSError as error:
            raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    return content.hexdigest()[:16]


def _why_not(error: BaseException) -> str:
    """Why a module cannot be imported, with the line that it failed at."""
    text = " ".join(str(error).split())
    # What lies before is the machinery of imports; a syntax error names file and line itself.
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:
        return text
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
    return f"{text} ({type(error).__name__} in {place})"


def _where_sought(module_name: str, error: BaseException) -> str:
    """What to do where a user's module itself is not found."""
    if not isinstance(error, ModuleNotFoundError) or not module_name.startswith(error.name or "/"):
        return ""
    if module_name.endswith(".py"):
        return f"; write it without .py: {module_name.removesuffix('.py')!r}"
    return "; run the command in the folder of its file, or name that folder in PYTHONPATH"
