"""Constructors that show the parameters they pass on: Avalanche refuses what it cannot see."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def showing(*others: Callable[..., Any]) -> Callable[[Function], Function]:
    """Decorate a constructor with `**settings` that go to these others: it shows their keywords."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *parameters, rest = signature.parameters.values()
        names = {parameter.name for parameter in parameters}
        for other in others:
            for name, parameter in keywords(other).items():
                if name not in names:
                    names.add(name)
                    parameters.append(parameter)
        function.__signature__ = signature.replace(parameters=[*parameters, rest])  # type: ignore[attr-defined]
        return function

    return decorate


def keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function that are given by name only."""
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
