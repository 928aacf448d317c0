"""What is wrong with a recipe's options, in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.outside import in_words
from vcl_radial.strategies.base import ContinualStrategy


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
    classes = strategy.__mro__[: strategy.__mro__.index(ContinualStrategy)]
    constructors = [vars(each)["__init__"] for each in classes if "__init__" in vars(each)]
    names = [
        argument.name
        for constructor in constructors
        for argument in inspect.signature(constructor).parameters.values()
        if argument.kind in (argument.KEYWORD_ONLY, argument.POSITIONAL_OR_KEYWORD)
    ]
    given = {"self", *inspect.signature(ContinualStrategy).parameters, *strategy.recipe_keys}
    return [key for key in dict.fromkeys(names) if key not in given]


def _named(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1] if found else None
