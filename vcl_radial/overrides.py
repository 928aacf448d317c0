"""A user's method that cannot be called as the method that it takes the place of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

_SUITE = ("vcl_radial.", "avalanche.")


def wrong_override(error: BaseException, *classes: Callable[..., Any]) -> str | None:
    """Which method of a class was called with arguments that it does not take, and its signature.

    Python names the line of the call, which is the suite's; the line to mend is the user's `def`.

    Args:
        error: what was raised.
        classes: those at work; functions among them are passed over.

    Returns:
        One line, or None where the error is another one.
    """
    if not isinstance(error, TypeError):
        return None
    for own in filter(inspect.isclass, classes):
        for owner in own.__mro__:
            for name, method in vars(owner).items():
                if (
                    isinstance(method, FunctionType)
                    and not owner.__module__.startswith(_SUITE)
                    and f"{method.__qualname__}()" in str(error)
                    and (asked := _overridden(own, name)) is not None
                    and not _can_take_its_calls(method, asked)
                ):
                    code = method.__code__
                    place = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
                    return (
                        f"{method.__qualname__}{inspect.signature(method)} ({place}) does not "
                        f"take the arguments that it is called with: define it as "
                        f"{name}{_plain(asked)}"
                    )
    return None


def _overridden(own: type[Any], name: str) -> FunctionType | None:
    """The suite's method of that name, of the first class that has one."""
    suite = (
        vars(c)[name] for c in own.__mro__ if c.__module__.startswith(_SUITE) and name in vars(c)
    )
    return next((method for method in suite if isinstance(method, FunctionType)), None)


def _can_take_its_calls(method: FunctionType, asked: FunctionType) -> bool:
    parameters = inspect.signature(asked).parameters.values()
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    names += ["more" for p in parameters if p.kind is p.VAR_KEYWORD]
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    try:
        inspect.signature(method).bind(*by_position, **dict.fromkeys(names))
    except TypeError:
        return False
    return True


def _plain(method: FunctionType) -> str:
    """A signature without its annotations."""
    signature = inspect.signature(method)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))
