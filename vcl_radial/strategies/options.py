"""What is wrong with a recipe's options, in words."""

from __future__ import annotations

import inspect
import math
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from vcl_radial.errors import UserError
from vcl_radial.outside import in_words
from vcl_radial.strategies.base import ContinualStrategy

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def check_types(strategy: type[ContinualStrategy], options: Mapping[str, Any]) -> None:
    """See that a recipe's options are what the constructor's annotations say.

    Those are looked at that are bool, int, float, str, or Literal. Infinity is no value of an
    option of the suite's own methods; what it means to a user's is for the user's class to say.

    Raises:
        UserError: one is something else.
    """
    wanted: dict[str, Any] = {}
    of_the_suite: dict[str, bool] = {}
    for constructor in reversed(_constructors(strategy)):  # a class has the last word on its own
        try:
            hints = get_type_hints(constructor)
        except Exception:  # a user's annotation may be of a name for type checkers alone
            hints = {}
        own = constructor.__module__.startswith("vcl_radial.")
        for key in inspect.signature(constructor).parameters:
            wanted[key], of_the_suite[key] = hints.get(key), own
    for key in own_options(strategy):
        if key in options and not _fits(options[key], wanted[key]):
            words = _in_words(wanted[key])
            raise UserError(f"options.{key} = {options[key]!r} must be {words}")
        value = options.get(key)
        if of_the_suite[key] and isinstance(value, float) and math.isinf(value):
            raise UserError(f"options.{key} = {value!r} must be a finite number")


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
    if slip := _slip(strategy, options, error):
        return slip
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


def require_base(made: ContinualStrategy) -> None:
    """See that a constructor has called that of the class it is derived from.

    Raises:
        UserError: it has not; names the constructor and the mend.
    """
    if hasattr(made, "model"):
        return
    own = _written(type(made))
    silent = [_place(each) for each in own if "super" not in each.__code__.co_names]
    name = silent[0] if silent else f"{type(made).__name__}.__init__"
    raise UserError(
        f"{name} does not make the strategy: begin it with super().__init__(**settings)"
    )


def _slip(
    strategy: type[ContinualStrategy], options: Mapping[str, Any], error: Exception
) -> UserError | None:
    """What a constructor does wrong with what a run gives to every method, if that is it."""
    text = str(error)
    own = _written(strategy)
    mend = "take **settings and pass them on by super().__init__(**settings)"
    if key := _named(r"__init__\(\) got an unexpected keyword argument '(\w+)'", text):
        for each in own:
            taken = inspect.signature(each).parameters
            if key not in taken and not any(a.kind is a.VAR_KEYWORD for a in taken.values()):
                return UserError(f"{_place(each)} takes no {key!r}: {mend}")
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    # The innermost is the one that has called the class it is derived from.
    caller = next((each for each in reversed(own) if each.__code__ in codes), None)
    if caller is None:
        return None
    # Python's words, and Avalanche's of what it was given by position.
    missing = re.findall(r"'(\w+)'", _named(r"missing \d+ required .*?: (.*)$", text) or "")
    missing += re.findall(r"parameter (\w+) is not set", text)
    given = inspect.signature(ContinualStrategy).parameters
    if lost := [key for key in missing if key in given]:
        return UserError(f"{_place(caller)} does not pass {lost[0]!r} on: {mend}")
    key = _named(r"multiple values for (?:keyword )?argument '(\w+)'", text)
    if key in given and key not in options:
        return UserError(f"{_place(caller)} passes {key!r} on twice: **settings has it already")
    key = _named(r"unexpected keyword argument: (\w+)", text)
    if key and (key not in options or key in own_options(strategy)):
        return UserError(
            f"{_place(caller)} passes {key!r} on, which the class it is derived from does not "
            "take: pass on no more than super().__init__(**settings)"
        )
    return None


def _place(function: FunctionType) -> str:
    """A constructor with its class and file."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    return f"{name} ({Path(function.__code__.co_filename).name})"


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


def _written(strategy: type[ContinualStrategy]) -> list[FunctionType]:
    """The constructors as they stand in files, without what Avalanche wraps them in."""
    unwrapped = (inspect.unwrap(each) for each in _constructors(strategy))
    return [each for each in unwrapped if isinstance(each, FunctionType)]


def _named(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1] if found else None
