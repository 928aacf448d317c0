"""What a constructor takes and passes on, read from its source or from the class itself."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from vcl_radial.ranges import RANGES, is_union
from vcl_radial.source import ClassSource, bindings, parsed

_TYPES: Mapping[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "None": None}


@dataclass(frozen=True)
class Parameter:
    """One that can be given by name.

    Attributes:
        annotation: bool, int, float, str, None, a Literal, a range of `vcl_radial.ranges` or a
            union of those; Any where the annotation is something else or missing.
        required: whether it has no default.
    """

    name: str
    annotation: Any = Any
    required: bool = False


@dataclass(frozen=True)
class Passed:
    """What a constructor gives to that of the class it is derived from.

    Attributes:
        names: the keywords that are written out.
        by_position: how many arguments come without a name.
        rest: whether its own `**settings` are passed on.
    """

    names: tuple[str, ...] = ()
    by_position: int = 0
    rest: bool = False


@dataclass(frozen=True)
class Constructor:
    """An `__init__`.

    Attributes:
        place: its name and file, for what is said of it.
        parameters: beside `self`, in their order.
        takes_rest: whether there is `**settings`.
        suite: whether it is the suite's own.
        passed: to the class it is derived from; None where it calls none, or does not say.
        opaque: whether it handles its `**settings` in a way that its source does not show.
    """

    place: str
    parameters: tuple[Parameter, ...]
    takes_rest: bool
    suite: bool
    passed: Passed | None
    opaque: bool

    @property
    def names(self) -> set[str]:
        """Of the parameters."""
        return {parameter.name for parameter in self.parameters}


def of_source(source: ClassSource) -> Constructor | None:
    """The constructor that a class defines itself, from its source; None where it has none."""
    assert source.node is not None
    assert source.path is not None
    for node in source.node.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            place = f"{source.name}.__init__ ({source.path.name})"
            types = {**_TYPES, **_imported_ranges(source.path)}
            return _of_node(node, place, source.module.startswith("vcl_radial."), types)
    return None


def _imported_ranges(path: Path) -> dict[str, Any]:
    """The annotations of `vcl_radial.ranges` that a file imports, by its names for them."""
    imports = (
        node
        for _, node in bindings(parsed(path).body)
        if isinstance(node, ast.ImportFrom) and node.module == "vcl_radial.ranges"
    )
    aliases = (alias for node in imports for alias in node.names if alias.name in RANGES)
    return {alias.asname or alias.name: RANGES[alias.name] for alias in aliases}


def of_function(function: FunctionType) -> Constructor:
    """A constructor that is already imported."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    place = f"{name} ({Path(function.__code__.co_filename).name})"
    suite = function.__module__.startswith("vcl_radial.")
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # a user's annotation may be of a name for type checkers alone
        hints = {}
    _, *taken = inspect.signature(function).parameters.values()
    parameters = tuple(
        Parameter(each.name, _simple(hints.get(each.name, Any)), each.default is each.empty)
        for each in taken
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    )
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        node = None
    if isinstance(node, ast.FunctionDef):
        return replace(_of_node(node, place, suite, _TYPES), parameters=parameters)
    rest = any(each.kind is each.VAR_KEYWORD for each in taken)
    return Constructor(place, parameters, rest, suite, passed=None, opaque=True)


def _of_node(
    node: ast.FunctionDef, place: str, suite: bool, types: Mapping[str, Any]
) -> Constructor:
    arguments = node.args
    by_position = [*arguments.posonlyargs, *arguments.args]
    without = len(by_position) - len(arguments.defaults)
    parameters = [
        Parameter(each.arg, _annotation(each.annotation, types), place_in_list < without)
        for place_in_list, each in enumerate(by_position)
    ][1:]
    parameters += [
        Parameter(each.arg, _annotation(each.annotation, types), default is None)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    rest = arguments.kwarg.arg if arguments.kwarg is not None else None
    calls = [call for call in ast.walk(node) if _is_of_base(call)]
    passed, used = _passed(calls[0], rest) if len(calls) == 1 else (None, False)
    opaque = len(calls) > 1 or used or bool(node.decorator_list) or _reads(node, rest)
    # A call by the name of the class, or of a helper, may be anything.
    opaque = opaque or (not calls and _may_call_base(node))
    return Constructor(place, tuple(parameters), rest is not None, suite, passed, opaque)


def _is_of_base(node: ast.AST) -> bool:
    """Whether it is `super().__init__(...)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    base = node.func.value
    is_super = isinstance(base, ast.Call) and isinstance(base.func, ast.Name)
    return node.func.attr == "__init__" and is_super and base.func.id == "super"  # type: ignore[attr-defined]


def _may_call_base(node: ast.FunctionDef) -> bool:
    return any(
        (isinstance(each, ast.Name) and each.id == "super")
        or (isinstance(each, ast.Attribute) and each.attr == "__init__")
        for each in ast.walk(node)
    )


def _passed(call: ast.AST, rest: str | None) -> tuple[Passed, bool]:
    """What a call passes, and whether part of that cannot be told."""
    assert isinstance(call, ast.Call)
    unpacked = [keyword.value for keyword in call.keywords if keyword.arg is None]
    own = [value for value in unpacked if isinstance(value, ast.Name) and value.id == rest]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    names = tuple(keyword.arg for keyword in call.keywords if keyword.arg is not None)
    unclear = starred or (len(own) < len(unpacked) and rest is not None)
    return Passed(names, len(call.args), bool(own)), unclear


def _reads(node: ast.FunctionDef, rest: str | None) -> bool:
    """Whether `**settings` is looked into: options may be taken out of it.

    Passing it on, and setting a key of it, are not.
    """
    if rest is None:
        return False
    plain = {
        id(each.value)
        for each in ast.walk(node)
        if (isinstance(each, ast.keyword) and each.arg is None)
        or (isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store))
    }
    # By position it is one argument, not options: what is wrong there is said elsewhere.
    plain |= {id(a) for call in ast.walk(node) if _is_of_base(call) for a in call.args}  # type: ignore[attr-defined]
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == rest)
    return any(id(name) not in plain for name in names)


def _annotation(node: ast.expr | None, types: Mapping[str, Any]) -> Any:
    """The type that an annotation writes; Any for all but the plain ones and ranges of numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # a type in quotes
        with suppress(SyntaxError):
            node = ast.parse(node.value, mode="eval").body
    wanted: Any = Any
    if isinstance(node, ast.Constant) and node.value is None:
        wanted = None
    elif isinstance(node, ast.Name):
        wanted = types.get(node.id, Any)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        wanted = _union(_annotation(node.left, types), _annotation(node.right, types))
    elif isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        name = ast.unparse(node.value).rpartition(".")[2]
        if name == "Literal" and all(isinstance(each, ast.Constant) for each in inner):
            wanted = Literal[tuple(each.value for each in inner)]  # type: ignore[attr-defined]
        elif name in ("Optional", "Union"):
            parts = (_annotation(part, types) for part in inner)
            wanted = _union(*parts, *([None] if name == "Optional" else []))
    return wanted


def _simple(annotation: Any) -> Any:
    """An annotation that is already a type; Any for all but the plain ones and ranges."""
    if is_union(annotation):
        return _union(*map(_simple, get_args(annotation)))
    if annotation is NoneType:
        return None
    known = annotation in (bool, int, float, str, *RANGES.values())
    return annotation if known or get_origin(annotation) is Literal else Any


def _union(*parts: Any) -> Any:
    return Any if Any in parts else Union[parts]  # noqa: UP007
