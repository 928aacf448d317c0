"""What is wrong with a recipe's options, in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from vcl_radial.errors import UserError
from vcl_radial.outside import in_words
from vcl_radial.strategies.base import ContinualStrategy

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def check_types(strategy: type[ContinualStrategy], options: Mapping[str, Any]) -> None:
    """See that a recipe's options are what the constructor's annotations say.

    Those are looked at that are bool, int, float, str, or Literal.

    Raises:
        UserError: one is something else.
    """
    wanted: dict[str, Any] = {}
    for constructor in reversed(_constructors(strategy)):  # a class has the last word on its own
        try:
            hints = get_type_hints(constructor)
        except Exception:  # a user's annotation may be of a name for type checkers alone
            hints = {}
        wanted |= {key: hints.get(key) for key in inspect.signature(constructor).parameters}
    for key in own_options(strategy):
        if key in options and not _fits(options[key], wanted[key]):
            words = _in_words(wanted[key])
            raise UserError(f"options.{key} = {options[key]!r} must be {words}")


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what an annotation says; of other annotations nothing is known."""
    if get_origin(wanted) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(wanted))
    if get_origin(wanted) is Literal:
        return any(value == each and type(value) is type(each) for each in get_args(wanted))
    if wanted is NoneType:
        return value is None
    if wanted not in tuple(_KINDS):
        return True
    if isinstance(value, bool):  # an int to Python
        return wanted is bool
    return isinstance(value, (int, float) if wanted is float else wanted)


def _in_words(wanted: Any) -> str:
    if get_origin(wanted) in (Union, UnionType):
        return " or ".join(_in_words(each) for each in get_args(wanted) if each is not NoneType)
    if get_origin(wanted) is Literal:
        return " or ".join(map(repr, get_args(wanted)))
    return _KINDS[wanted]


def wrong_options(
    name: str, strategy: type[ContinualStrategy], options: Mapping[str, Any], error: Exception
) -> UserError:
    """Why a strategy's constructor has refused a recipe's options.

    Args:
        name: what the recipe calls the strategy.
        strategy: the class.
        options: the recipe's table.
        error: the constructor's TypeError or ValueError.
    """
    text = str(error)
    # Python's words name one, and Avalanche's all.
    refused = re.findall(r"\w+", _named(r"unexpected keyword arguments?(.*)", text) or "")
    if unknown := [key for key in options if key in refused]:
        known = own_options(strategy)
        has = f"its options are {', '.join(known)}" if known else "it has no options"
        return UserError(f"unknown option {unknown[0]!r} of strategy = {name!r}: {has}")
    if key := _named(r"multiple values for keyword argument '(\w+)'", text):
        return UserError(
            f"options.{key} is no option: a run gives {key} to every method, from the keys of the "
            "recipe that stand above [options]"
        )
    if missing := _named(r"missing \d+ required .*argument.*?: (.*)$", text):
        keys = " and ".join(f"options.{key}" for key in re.findall(r"'(\w+)'", missing))
        return UserError(f"strategy = {name!r} wants {keys}, which the recipe does not have")
    words = in_words(error, strategy)
    return UserError(f"strategy = {name!r} with options {dict(options)}: {words}")


def own_options(strategy: type[ContinualStrategy]) -> list[str]:
    """The names of the arguments that a class has beyond those of every strategy."""
    names = [
        argument.name
        for constructor in _constructors(strategy)
        for argument in inspect.signature(constructor).parameters.values()
        if argument.kind in (argument.KEYWORD_ONLY, argument.POSITIONAL_OR_KEYWORD)
    ]
    given = {"self", *inspect.signature(ContinualStrategy).parameters, *strategy.recipe_keys}
    return [key for key in dict.fromkeys(names) if key not in given]


def _constructors(strategy: type[ContinualStrategy]) -> list[Callable[..., None]]:
    """Those of a class and of all that it is derived from but `ContinualStrategy` and its own."""
    classes = strategy.__mro__[: strategy.__mro__.index(ContinualStrategy)]
    return [vars(each)["__init__"] for each in classes if "__init__" in vars(each)]


def _named(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1] if found else None
