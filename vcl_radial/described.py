"""Modules that are known by what they define: their names and descriptions, without an import."""

from __future__ import annotations

import ast
from pathlib import Path


def described(folder: Path, function: str) -> dict[str, str]:
    """The modules of a folder that define a function, with the first lines of their docstrings.

    Args:
        folder: whose modules are looked at, in the order of their names.
        function: at the top level of a module.

    Returns:
        Descriptions without a full stop, by the names of the modules with hyphens.
    """
    descriptions = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body):
            first_line = (ast.get_docstring(tree) or "").partition("\n")[0]
            descriptions[path.stem.replace("_", "-")] = first_line.rstrip(".")
    return descriptions


def module_of(package: str, name: str) -> str:
    """The module that a name of `described` stands for."""
    return f"{package}.{name.replace('-', '_')}"
