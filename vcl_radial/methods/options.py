"""A recipe's options, checked against the constructors that take them.

The options of a class are the keyword parameters of its constructor and, if that takes
`**settings`, the parameters of its base class's constructor, and so on. A parameter that a
constructor sets for its base class is no option; the class declares it:

    fixed_options = frozenset({"features"})
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from inspect import Parameter
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from vcl_radial.config import outside, ranges
from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method

_RECIPE_PARAMETERS = ("prior_scale", "initial_noise")
"""Parameters that the recipe keys of the same name set, unless its options do."""

_STRATEGY_PARAMETERS = frozenset(
    {
        *("drop_last", "model", "optimizer", "schedule", "tensor_stream"),
        *("criterion", "device", "eval_every", "eval_mb_size", "evaluator", "peval_mode"),
        *("plugins", "train_epochs", "train_mb_size"),
    }
)
"""Parameters that every Avalanche strategy takes, from the suite and from Avalanche."""

_NOT_FROM_RUNS = {"criterion", "eval_every", "peval_mode", "eval_seed", "likelihood"}


def method_class_of(cls: Any) -> type[Method] | None:
    """The method class of a method or of an Avalanche strategy; None for any other object."""
    method = getattr(cls, "method_class", cls)
    return method if inspect.isclass(method) and issubclass(method, Method) else None


def keywords(cls: type[Any]) -> dict[str, Parameter]:
    """The named parameters of the constructor that a class defines, with their annotations.

    An annotation that values cannot be checked against is `Any`.
    """
    function = vars(cls).get("__init__")
    if function is None:
        return {}
    annotations = ranges.annotations_of(function)
    _, *parameters = inspect.signature(function).parameters.values()
    return {
        p.name: p.replace(annotation=ranges.checkable(annotations.get(p.name, Any)))
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }


def method_keywords(method: type[Method]) -> set[str]:
    """The settings that the constructors of a method take, without the network."""
    owners = (*_constructors(method), Method)
    return {name for owner in owners for name in keywords(owner)} - {"network"}


@lru_cache(maxsize=1)
def common_keys() -> frozenset[str]:
    """The parameters that a run sets for every method or its strategy."""
    return _STRATEGY_PARAMETERS | keywords(Method).keys()


def options_of(cls: type[Any]) -> Mapping[str, Parameter]:
    """The parameters of a method's, or a strategy's, constructors that recipes set as options.

    They exclude the parameters that every method has and the recipe's keys (`recipe_keys`).
    """
    options: dict[str, Parameter] = {}
    excluded = {*common_keys(), *cls.recipe_keys}
    for owner in _constructors(cls):
        excluded.update(options)
        options |= {key: p for key, p in keywords(owner).items() if key not in excluded}
        excluded |= vars(owner).get("fixed_options", frozenset())
        if not _takes_rest(owner):
            break
    return options


@lru_cache(maxsize=256)
def _model_of(cls: Any) -> type[BaseModel]:
    """The options of a class as a pydantic model, which takes no other keys."""
    # Pydantic does not allow every name for a field, but allows it as an alias.
    fields: dict[str, Any] = {
        f"option_{number}": (
            p.annotation,
            Field(... if _is_required(p) else p.default, alias=key),
        )
        for number, (key, p) in enumerate(options_of(cls).items())
    }
    return create_model("Options", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _constructors(cls: Any) -> Iterator[Any]:
    """The classes whose constructors take a method's options, in call order."""
    for owner in cls.__mro__:
        if owner is Method:
            return
        yield owner
        if "method_class" in vars(owner):  # a strategy, which makes the method
            yield from _constructors(owner.method_class)
            return


def _takes_rest(cls: type[Any]) -> bool:
    """Whether a class has no constructor of its own, or one that takes `**settings`."""
    function = vars(cls).get("__init__")
    if function is None:
        return True
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.name not in _RECIPE_PARAMETERS


def check_method_options(
    name: str, cls: Any, options: Mapping[str, Any], recipe_keys: Collection[str] = ()
) -> None:
    """Check that a run can make a method, and that the method takes a recipe's options.

    Args:
        name: name of the method in the recipe.
        cls: class of the method, or of an Avalanche strategy.
        options: the recipe's [options] table.
        recipe_keys: the recipe's other keys, which belong above [options].

    Raises:
        UserError: a constructor lacks a parameter that every run sets, or options are unknown,
            missing, or of a wrong type; the message names all of them.
    """
    if missing_parameter := _constructor_error(cls):
        raise UserError(f"strategy = {name!r}: {missing_parameter}")
    try:
        _model_of(cls).model_validate(dict(options))
    except ValidationError as error:
        kinds = {str(fault["loc"][0]): fault["type"] for fault in error.errors()}
    else:
        return
    parameters = options_of(cls)
    unknown = [key for key, kind in kinds.items() if kind == "extra_forbidden"]
    missing = [f"options.{key}" for key, kind in kinds.items() if kind == "missing"]
    faults = [_unknown_option(name, key, parameters, recipe_keys) for key in unknown]
    if missing and not unknown:  # a misspelt key explains why another key is missing
        needed = " and ".join(missing)
        faults.append(f"strategy = {name!r} wants {needed}, which the recipe does not have")
    faults += [
        f"options.{key} = {value!r} must be {ranges.expected(value, parameters[key].annotation)}"
        for key, value in options.items()
        if key in kinds and key in parameters
    ]
    raise UserError("; ".join(faults))


def _unknown_option(
    name: str, key: str, options: Collection[str], recipe_keys: Collection[str]
) -> str:
    """The message that a method does not have an option."""
    if key in common_keys() or key in recipe_keys:
        return (
            f"options.{key} is no option: a run gives {key} to every method, from the keys of the "
            "recipe that stand above [options]"
        )
    fault = f"unknown option {key!r} of strategy = {name!r}: "
    if not options:
        return f"{fault}it has no options"
    if len(options) == 1:
        return f"{fault}its only option is {next(iter(options))!r}"
    (nearest,) = get_close_matches(key, options, 1, cutoff=0.0)
    return f"{fault}the nearest is {nearest!r} (its options are {', '.join(options)})"


def _constructor_error(cls: type[Any]) -> str | None:
    """The error message if a user's constructor lacks a parameter that every run sets."""
    is_method = issubclass(cls, Method)
    needed = common_keys() - _NOT_FROM_RUNS - {"network"}
    if is_method:
        needed -= _STRATEGY_PARAMETERS
    for owner in _constructors(cls):
        if owner.__module__.startswith("vcl_radial."):
            return None
        if not _takes_rest(owner):
            for key in sorted(needed - keywords(owner).keys()):
                arguments = "network, **settings" if is_method else "**settings"
                return (
                    f"{owner.__qualname__}.__init__ ({Path(inspect.getfile(owner)).name}) takes no "
                    f"{key!r}: take **settings and pass them on by super().__init__({arguments})"
                )
    return None


def not_made(name: str, cls: type[Any], options: Mapping[str, Any], error: Exception) -> UserError:
    """The error for options that a method's constructor rejects, with the original message."""
    message = outside.format_error(error, cls)
    return UserError(f"strategy = {name!r} with options {dict(options)}: {message}")


def require_base(learner: Any) -> None:
    """Check that the constructor of a method or strategy has called its base constructor.

    Raises:
        UserError: it has not called it.
    """
    if not hasattr(learner, "model") and not hasattr(learner, "network"):
        arguments = "network, **settings" if isinstance(learner, Method) else "**settings"
        raise UserError(
            f"{type(learner).__name__}.__init__ does not make the method: begin it with "
            f"super().__init__({arguments})"
        )
