"""Classes as their source files define them, read without importing anything.

A user's module imports PyTorch and Avalanche, which takes seconds: what is wrong with a name, a
file or a constructor is said before that. Where only an import can tell, `NotReadable` is raised.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from vcl_radial.reading import read_bytes

FOREIGN = {"avalanche", "numpy", "torch", "torchvision", *sys.stdlib_module_names}
"""Packages whose classes are not looked into."""

_DYNAMIC = {"exec", "globals", "locals", "setattr", "vars"}
"""What a module may give itself names with."""


_MADE_OF = {"vcl_radial.strategies": "vcl_radial.methods"}
"""Packages whose modules have no files: they are made of those of the same name in another."""


class NotReadable(Exception):
    """The source alone does not say: an import has to."""


class Absent(Exception):
    """A module is not there, or has nothing of a name.

    Attributes:
        module: its name.
        near: the names that the module has; None where the module itself is absent.
    """

    def __init__(self, message: str, module: str, near: Iterable[str] | None = None) -> None:
        super().__init__(message)
        self.module = module
        self.near = None if near is None else list(near)


@dataclass(frozen=True)
class ClassSource:
    """A class of a module; `node` is None of one that is not looked into."""

    module: str
    name: str
    node: ast.ClassDef | None = None
    path: Path | None = None


def module_file(name: str) -> Path:
    """The file that an import of a module would read.

    Raises:
        Absent: there is no such module.
        NotReadable: it is not a file of Python.
    """
    full, *inner = name.split(".")
    try:
        spec = find_spec(full)  # of what is at the top: below, it would import what is above
        for part in inner:
            if spec is None:
                break
            full = f"{full}.{part}"
            spec = PathFinder.find_spec(full, spec.submodule_search_locations or [])
    except (ImportError, ValueError) as error:
        raise NotReadable from error
    if spec is None and (made_of := _MADE_OF.get(full.rpartition(".")[0])) is not None:
        return module_file(f"{made_of}.{full.rpartition('.')[2]}")
    if spec is None:
        raise Absent(f"No module named {full!r}", full)
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise NotReadable
    return Path(spec.origin)


def parsed(path: Path) -> ast.Module:
    """A file of Python as a syntax tree.

    Raises:
        SyntaxError: it is none.
        NotReadable: it cannot be read.
    """
    try:
        state = path.stat()
        return _parsed(path, state.st_mtime_ns, state.st_size)
    except (OSError, ValueError) as error:  # a null byte is a ValueError
        if isinstance(error, SyntaxError):
            raise
        raise NotReadable from error


@lru_cache(maxsize=64)
def _parsed(path: Path, _time: int, _size: int) -> ast.Module:
    return ast.parse(read_bytes(path), str(path))


def definition(module: str, name: str) -> ast.AST:
    """What binds a name at the top of a module.

    Raises:
        Absent: the module is not there, or nothing in it does.
        NotReadable: it cannot be told.
        SyntaxError: the file is not Python.
    """
    tree = parsed(module_file(module))
    bound = dict(bindings(tree.body))
    if name in bound:
        return bound[name]
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if "*" in bound or "__getattr__" in bound or names & _DYNAMIC:
        raise NotReadable
    raise Absent(f"{module!r} has no {name!r}", module, bound)


def bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names and what binds them, also within `if` and `try`."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for inner in (part for target in targets for part in ast.walk(target)):
                if isinstance(inner, ast.Name):
                    yield inner.id, node
        else:
            for field in ("body", "handlers", "orelse", "finalbody"):
                blocks = getattr(node, field, [])
                if blocks and isinstance(blocks[0], ast.ExceptHandler):
                    blocks = [inner for handler in blocks for inner in handler.body]
                yield from bindings(blocks)


def classes_of(module: str) -> list[ClassSource]:
    """The classes that a module defines itself.

    Raises:
        Absent: the module is not there.
        NotReadable: it cannot be told.
        SyntaxError: the file is not Python.
    """
    path = module_file(module)
    nodes = (node for node in parsed(path).body if isinstance(node, ast.ClassDef))
    return [ClassSource(module, node.name, node, path) for node in nodes]


def find_class(module: str, name: str) -> ClassSource:
    """The class that a module knows by a name, wherever it is defined.

    Raises:
        Absent: the module is not there or has nothing of that name.
        NotReadable: it cannot be told.
        SyntaxError: a file is not Python.
    """
    if module.partition(".")[0] in FOREIGN:
        return ClassSource(module, name)
    node = definition(module, name)
    if isinstance(node, ast.ClassDef):
        if node.decorator_list or node.keywords:  # they may make any class of it
            raise NotReadable
        return ClassSource(module, name, node, module_file(module))
    if isinstance(node, ast.ImportFrom):
        return find_class(*_imported(module, node, name))
    raise NotReadable


def _imported(module: str, node: ast.ImportFrom, name: str) -> tuple[str, str]:
    """Module and name that `from ... import ... as name` names."""
    original = next(alias.name for alias in node.names if name in (alias.asname, alias.name))
    if not node.level:
        return node.module or "", original
    package = module.split(".")
    if module_file(module).name != "__init__.py":
        package.pop()
    package = package[: len(package) - node.level + 1]
    if not package:
        raise NotReadable
    return ".".join([*package, *([node.module] if node.module else [])]), original


def _base(source: ClassSource, node: ast.expr) -> ClassSource:
    """A class that another is derived from."""
    if isinstance(node, ast.Subscript):  # Generic[T]
        node = node.value
    if isinstance(node, ast.Name):
        if node.id == "object":
            return ClassSource("builtins", "object")
        return find_class(source.module, node.id)
    if isinstance(node, ast.Attribute):
        return find_class(_module_of(source.module, node.value), node.attr)
    raise NotReadable


def _module_of(module: str, node: ast.expr) -> str:
    """The module that an expression such as `torch.nn` names."""
    if isinstance(node, ast.Attribute):
        return f"{_module_of(module, node.value)}.{node.attr}"
    if not isinstance(node, ast.Name):
        raise NotReadable
    bound = definition(module, node.id)
    if isinstance(bound, ast.Import):
        names = {alias.asname or alias.name.partition(".")[0]: alias for alias in bound.names}
        alias = names[node.id]
        return alias.name if alias.asname else node.id
    if isinstance(bound, ast.ImportFrom):
        return ".".join(_imported(module, bound, node.id))
    raise NotReadable


def lineage(source: ClassSource) -> list[ClassSource]:
    """A class and all that it is derived from, in the order in which Python asks them (C3).

    Raises:
        NotReadable: it cannot be told.
        SyntaxError: a file is not Python.
    """
    try:
        return _lineage(source)
    except (Absent, RecursionError) as error:  # of a base, or a class that is its own
        raise NotReadable from error


def _lineage(source: ClassSource) -> list[ClassSource]:
    bases = [_base(source, node) for node in source.node.bases] if source.node is not None else []
    waiting = [*map(_lineage, bases), bases]
    order = [source]
    while waiting := [classes for classes in waiting if classes]:
        tails = [_key(found) for classes in waiting for found in classes[1:]]
        following = next((c[0] for c in waiting if _key(c[0]) not in tails), None)
        if following is None:
            raise NotReadable
        order.append(following)
        waiting = [c[1:] if _key(c[0]) == _key(following) else c for c in waiting]
    return order


def _key(source: ClassSource) -> tuple[str, str]:
    return source.module, source.name
