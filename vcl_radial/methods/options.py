"""A recipe's options, checked against the constructors that take them.

The options of a class are the keyword parameters of its constructors: its own, and where that takes
`**settings`, those of the class that it is derived from, and so on. What a constructor sets for the
class that it is derived from is no option; the class says so beside it:

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

_OF_THE_RECIPE = ("prior_scale", "initial_noise")
"""Parameters that a recipe's keys of the same name give, unless its options do."""

_OF_STRATEGIES = frozenset(
    {
        *("drop_last", "model", "optimizer", "schedule", "tensor_stream"),
        *("criterion", "device", "eval_every", "eval_mb_size", "evaluator", "peval_mode"),
        *("plugins", "train_epochs", "train_mb_size"),
    }
)
"""What every Avalanche strategy takes, of the suite and of Avalanche itself."""

_NOT_FROM_RUNS = {"criterion", "eval_every", "peval_mode", "eval_seed", "likelihood"}


def method_class_of(cls: Any) -> type[Method] | None:
    """The class of a method: itself, or what an Avalanche strategy drives; None of other things."""
    method = getattr(cls, "method_class", cls)
    return method if inspect.isclass(method) and issubclass(method, Method) else None


def keywords(cls: type[Any]) -> dict[str, Parameter]:
    """The parameters that a class's own constructor takes by name, with their annotations.

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
    """The settings that the constructors of a method take, the network not among them."""
    owners = (*_constructors(method), Method)
    return {name for owner in owners for name in keywords(owner)} - {"network"}


@lru_cache(maxsize=1)
def common_keys() -> frozenset[str]:
    """What a run gives to every method or to its strategy."""
    return _OF_STRATEGIES | keywords(Method).keys()


def options_of(cls: type[Any]) -> Mapping[str, Parameter]:
    """The parameters of a method's, or a strategy's, constructors that recipes set as options.

    Those that every method has and the recipe's keys (`recipe_keys`) are not among them.
    """
    options: dict[str, Parameter] = {}
    taken = {*common_keys(), *cls.recipe_keys}
    for owner in _constructors(cls):
        options |= {key: p for key, p in keywords(owner).items() if key not in taken | {*options}}
        taken |= vars(owner).get("fixed_options", frozenset())
        if not _takes_rest(owner):
            break
    return options


@lru_cache(maxsize=256)
def _model_of(cls: Any) -> type[BaseModel]:
    """The options of a class as a pydantic model, which takes no other keys."""
    # Aliases: a model cannot have every name as that of a field.
    fields: dict[str, Any] = {
        f"option_{number}": (
            p.annotation,
            Field(... if _is_required(p) else p.default, alias=key),
        )
        for number, (key, p) in enumerate(options_of(cls).items())
    }
    return create_model("Options", __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _constructors(cls: Any) -> Iterator[Any]:
    """The classes whose constructors take a method's options, in the order of the calls."""
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
    return parameter.default is parameter.empty and parameter.name not in _OF_THE_RECIPE


def check_options(
    name: str, cls: Any, options: Mapping[str, Any], above: Collection[str] = ()
) -> None:
    """See that a method can be made by a run, and that a recipe's options are what it takes.

    Args:
        name: what the recipe calls the method.
        cls: the class of the method, or of an Avalanche strategy.
        options: the recipe's table.
        above: the recipe's other keys, which belong above [options].

    Raises:
        UserError: a constructor lacks what all have, or options are unknown, missing, or of another
            type; it names each of them.
    """
    if lacking := _constructor_error(cls):
        raise UserError(f"strategy = {name!r}: {lacking}")
    try:
        _model_of(cls).model_validate(dict(options))
    except ValidationError as error:
        wrong = {str(fault["loc"][0]): fault["type"] for fault in error.errors()}
    else:
        return
    known = options_of(cls)
    unknown = [key for key, kind in wrong.items() if kind == "extra_forbidden"]
    missing = [f"options.{key}" for key, kind in wrong.items() if kind == "missing"]
    faults = [_unknown(name, key, known, above) for key in unknown]
    if missing and not unknown:  # a misspelt key is the reason why another one is missing
        needed = " and ".join(missing)
        faults.append(f"strategy = {name!r} wants {needed}, which the recipe does not have")
    faults += [
        f"options.{key} = {value!r} must be {ranges.wanted(value, known[key].annotation)}"
        for key, value in options.items()
        if key in wrong and key in known
    ]
    raise UserError("; ".join(faults))


def _unknown(name: str, key: str, known: Collection[str], above: Collection[str]) -> str:
    """The fault that an option is none of a method's."""
    if key in common_keys() or key in above:
        return (
            f"options.{key} is no option: a run gives {key} to every method, from the keys of the "
            "recipe that stand above [options]"
        )
    fault = f"unknown option {key!r} of strategy = {name!r}: "
    if not known:
        return f"{fault}it has no options"
    if len(known) == 1:
        return f"{fault}its only option is {next(iter(known))!r}"
    (nearest,) = get_close_matches(key, known, 1, cutoff=0.0)
    return f"{fault}the nearest is {nearest!r} (its options are {', '.join(known)})"


def _constructor_error(cls: type[Any]) -> str | None:
    """What a user's constructor without `**settings` does not take of what every run gives."""
    is_method = issubclass(cls, Method)
    needed = common_keys() - _NOT_FROM_RUNS - {"network"}
    if is_method:
        needed -= _OF_STRATEGIES
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
    """The error that a method's constructor has refused a recipe's options, with its message."""
    message = outside.format_error(error, cls)
    return UserError(f"strategy = {name!r} with options {dict(options)}: {message}")


def require_base(made: Any) -> None:
    """See that a constructor has called that of the class it is derived from.

    Raises:
        UserError: it has not.
    """
    if not hasattr(made, "model") and not hasattr(made, "network"):
        arguments = "network, **settings" if isinstance(made, Method) else "**settings"
        raise UserError(
            f"{type(made).__name__}.__init__ does not make the method: begin it with "
            f"super().__init__({arguments})"
        )
