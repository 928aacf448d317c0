"""Plugins, metrics and loggers of Avalanche, made from their names and arguments.

    {"name": "ReplayPlugin", "mem_size": 200}

A name is one of Avalanche's own, or a user's class or function as `package.module:name`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TypeAlias

from avalanche.core import BasePlugin
from avalanche.evaluation import PluginMetric
from avalanche.logging import BaseLogger

from vcl_radial.config import outside
from vcl_radial.errors import UserError

Kind: TypeAlias = Literal["plugins", "metrics", "loggers"]
Part: TypeAlias = Mapping[str, Any]
"""The name of a class or function, and its arguments."""

_MODULES: Mapping[Kind, str] = {
    "plugins": "avalanche.training.plugins",
    "metrics": "avalanche.evaluation.metrics",
    "loggers": "avalanche.logging",
}
_BASES: Mapping[Kind, type] = {
    "plugins": BasePlugin,
    "metrics": PluginMetric,
    "loggers": BaseLogger,
}
_FOLDERS = ("log_folder", "tb_log_dir", "dir")
"""Parameters of Avalanche's loggers that name a folder."""


def make(kind: Kind, parts: Sequence[Part]) -> list[Any]:
    """Make plugins or metrics; a metric without arguments scores every experience and the stream.

    Raises:
        UserError: see `check`; or a constructor refuses the arguments.
    """
    return [thing for part in parts for thing in _made(kind, part)]


def open_loggers(parts: Sequence[Part], folder: Path, stack: ExitStack) -> list[Any]:
    """Make loggers that write below a folder, unless their arguments name another place.

    Args:
        parts: the loggers.
        folder: their folder; each has a file or a folder of its name in it.
        stack: closes their files.

    Raises:
        UserError: see `make`; or a file cannot be written.
    """
    loggers = []
    for part in parts:
        place = folder / part["name"].rpartition(":")[2]
        parameters = _parameters("loggers", part)
        filled: dict[str, Any] = {name: str(place) for name in _FOLDERS if name in parameters}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if "file" in parameters and "file" not in part:
                file = place.with_name(f"{place.name}.txt").open("w", encoding="utf-8")
                filled["file"] = stack.enter_context(file)
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror}", at=folder) from None
        for logger in _made("loggers", {**filled, **part}):
            stack.callback(getattr(logger, "close", lambda: None))
            loggers.append(logger)
    return loggers


def check(kind: Kind, parts: Sequence[Part]) -> None:
    """Check that parts exist and take their arguments, without making them.

    Raises:
        UserError: there is no such part, or an argument is unknown or missing.
    """
    for part in parts:
        signature = inspect.signature(_found(kind, part["name"]))
        try:
            signature.bind(**_arguments(part))
        except TypeError as error:
            known = ", ".join(signature.parameters)
            raise UserError(
                f"{part['name']}: {error}; it takes {known}", at=f"avalanche.{kind}"
            ) from None


def _found(kind: Kind, name: str) -> Callable[..., Any]:
    """The class or function of a name."""
    own = outside.is_named(name)
    target = None if own else f"{_MODULES[kind]}:{name}"
    found = outside.find(f"avalanche.{kind}", name, target)
    fits = inspect.isfunction(found) or (inspect.isclass(found) and issubclass(found, _BASES[kind]))
    if not fits or name == "EvaluationPlugin":
        raise UserError(f"{name} is none of the {kind} of Avalanche", at=f"avalanche.{kind}")
    return found  # type: ignore[no-any-return]


def _made(kind: Kind, part: Part) -> Sequence[Any]:
    check(kind, [part])
    name, arguments = part["name"], _arguments(part)
    if kind == "metrics" and not arguments:
        parameters = _parameters(kind, part)
        arguments = {key: True for key in ("experience", "stream") if key in parameters}
    function = _found(kind, name)
    try:
        made = function(**arguments)
    except Exception as error:  # a constructor may fail in any way
        fault = outside.format_error(error, function)
        raise UserError(f"{name}: {fault}", at=f"avalanche.{kind}") from error
    several = made if isinstance(made, list | tuple) else [made]
    if not several or not all(isinstance(thing, _BASES[kind]) for thing in several):
        raise UserError(f"{name}: these arguments make none of the {kind}", at=f"avalanche.{kind}")
    return several


def _parameters(kind: Kind, part: Part) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(_found(kind, part["name"])).parameters


def _arguments(part: Part) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "name"}
