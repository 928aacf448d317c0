"""A recipe's options, checked against the constructors that take them.

What a class takes is read once, from its source (`read`) before anything is imported or from the
class (`signature_of`); one pydantic model made from that says what is wrong with options.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import FunctionType
from typing import Any, Union, get_args

from pydantic import ConfigDict, Field, ValidationError, create_model

from vcl_radial import outside, ranges
from vcl_radial.errors import UserError
from vcl_radial.signature import Constructor, Parameter, Passed, of_function, of_source
from vcl_radial.source import ClassSource, NotReadable, bindings, find_class, lineage

METHOD = ("vcl_radial.methods.base", "Method")
STRATEGY = ("vcl_radial.strategies.base", "ContinualStrategy")
BASES = (METHOD, STRATEGY)
"""The classes that a method is derived from: plain, or as Avalanche has it."""

_OF_THE_RECIPE = ("prior_scale", "initial_noise")
_OF_AVALANCHE = {
    *("train_mb_size", "train_epochs", "eval_mb_size", "device", "plugins", "evaluator"),
    *("criterion", "eval_every", "peval_mode"),
}
_NOT_FROM_RUNS = {"criterion", "eval_every", "peval_mode", "eval_seed", "likelihood", "network"}
_PASSED_ON = {METHOD: ("network",), STRATEGY: ("model", "optimizer")}
"""What a constructor has to give to that of its base."""
_CALL = {METHOD: "super().__init__(network, **settings)", STRATEGY: "super().__init__(**settings)"}
_Base = tuple[str, str]


@dataclass(frozen=True)
class Signature:
    """What a method's constructors take, from its own to the last before the common base.

    Attributes:
        constructors: in the order in which they are called.
        recipe_keys: those of the class.
        base: the common base.
        likelihoods: those of the class, where it says which it serves.
        posteriors: likewise.
        overrides: the names of `Method` that a plain method, or that of a strategy, defines
            differently.
    """

    constructors: tuple[Constructor, ...]
    recipe_keys: frozenset[str]
    base: _Base = STRATEGY
    likelihoods: frozenset[str] | None = None
    posteriors: frozenset[str] | None = None
    overrides: frozenset[str] = frozenset()

    @property
    def options(self) -> dict[str, tuple[Parameter, bool]]:
        """The parameters beyond those of every method, and whether the suite defines them."""
        options: dict[str, tuple[Parameter, bool]] = {}
        fixed = {*common_keys(), *self.recipe_keys}
        for constructor in self.constructors:
            for parameter in constructor.parameters:
                if parameter.name not in fixed:
                    options.setdefault(parameter.name, (parameter, constructor.suite))
            if constructor.passed is not None:
                fixed |= {*constructor.passed.names}
            if not constructor.takes_rest and not constructor.opaque:
                break
        return options

    @property
    def opaque(self) -> bool:
        """Whether a constructor may take options that none of them names."""
        return any(constructor.opaque for constructor in self.constructors)


@lru_cache(maxsize=1)
def common_keys() -> frozenset[str]:
    """What every method takes, and a run gives to it or to its strategy."""
    constructors = [of_source(find_class(*base)) for base in BASES]
    names = (constructor.names for constructor in constructors if constructor is not None)
    return frozenset({*_OF_AVALANCHE}.union(*names))


def read(source: ClassSource) -> Signature | None:
    """The signature of a class from its source; None of a class that is no method.

    Raises:
        NotReadable: it cannot be told.
        SyntaxError: a file is not Python.
    """
    order = lineage(source)
    places = [(each.module, each.name) for each in order]
    base = next((base for base in BASES if base in places), None)
    if base is None:
        return None
    classes = order[: places.index(base)]
    # Abstract and generic classes have no constructor.
    plain = ("abc", "builtins", "typing")
    classes = [found for found in classes if found.module not in plain]
    if any(found.node is None for found in classes):
        raise NotReadable
    constructors = tuple(filter(None, map(of_source, classes)))
    keys = _names(classes, "recipe_keys") or frozenset()
    overrides = _overrides(classes, base)
    likelihoods, posteriors = (_names(classes, name) for name in ("likelihoods", "posteriors"))
    return Signature(constructors, keys, base, likelihoods, posteriors, overrides)


def _overrides(classes: Sequence[ClassSource], base: _Base) -> frozenset[str]:
    """The names of the common base that classes define with another value."""
    if base != METHOD:
        return frozenset()
    of_base = _values(find_class(*base))
    values = {
        name: value for source in reversed(classes) for name, value in _values(source).items()
    }
    return frozenset(name for name, value in values.items() if of_base.get(name, value) != value)


def _values(source: ClassSource) -> dict[str, str]:
    """What is bound to the names of a class's body but those of Python's own, as text."""
    assert source.node is not None
    bound = bindings(source.node.body)
    values = ((name, getattr(node, "value", None) or node) for name, node in bound)
    return {name: ast.dump(value) for name, value in values if not name.startswith("__")}


def _names(classes: Sequence[ClassSource], attribute: str) -> frozenset[str] | None:
    """A class attribute that is a frozenset of strings, as the first class has it that does.

    Raises:
        NotReadable: it is written in another way.
    """
    for source in classes:
        assert source.node is not None
        for node in source.node.body:
            one = [getattr(node, "target", None)]
            targets = node.targets if isinstance(node, ast.Assign) else one
            if any(isinstance(t, ast.Name) and t.id == attribute for t in targets):
                value: Any = getattr(node, "value", None)
                with suppress(ValueError, AttributeError):
                    return frozenset(ast.literal_eval(value.args[0]) if value.args else ())
                raise NotReadable
    return None


def signature_of(cls: type[Any]) -> Signature:
    """The signature of a class that is already imported, a method or an Avalanche strategy."""
    places = [(each.__module__, each.__name__) for each in cls.__mro__]
    base = next(base for base in BASES if base in places)
    classes = cls.__mro__[: places.index(base)]
    if base == STRATEGY:
        inner = signature_of(cls.method_class)
        classes = tuple(each for each in classes if "method_class" not in vars(each))
    # As they stand in files: Avalanche wraps them, and so gives one to a class without its own.
    written = ((c, inspect.unwrap(vars(c)["__init__"])) for c in classes if "__init__" in vars(c))
    constructors = tuple(
        of_function(function)
        for c, function in written
        if isinstance(function, FunctionType)
        and function.__qualname__ == f"{c.__qualname__}.__init__"
    )
    if base == STRATEGY:
        if not constructors:
            return inner
        constructors, overrides = constructors + inner.constructors, inner.overrides
    else:
        of_base = vars(cls.__mro__[len(classes)]).items()
        static = inspect.getattr_static
        changed = (n for n, value in of_base if n[:2] != "__" and static(cls, n) != value)
        overrides = frozenset(changed)
    likelihoods, posteriors = (
        next((vars(kind)[name] for kind in classes if name in vars(kind)), None)
        for name in ("likelihoods", "posteriors")
    )
    return Signature(constructors, cls.recipe_keys, base, likelihoods, posteriors, overrides)


def check_options(
    name: str, signature: Signature, options: Mapping[str, Any], above: Collection[str] = ()
) -> None:
    """See that a strategy can be made, and that a recipe's options are what it takes.

    Types are checked that are bool, int, float, str, or Literal. Infinity is no value of an option
    of the suite's own methods; what it means to a user's is for the user's class to say.

    Args:
        name: what the recipe calls the strategy.
        signature: of its class.
        options: the recipe's table.
        above: the recipe's other keys, which belong above [options].

    Raises:
        UserError: a constructor lacks what all have, or an option is unknown, missing, or of
            another type.
    """
    if slip := _slip(signature):
        raise UserError(f"strategy = {name!r}: {slip}")
    known = signature.options
    fields: dict[str, Any] = {
        # An alias: the name itself may be one that a model cannot have.
        f"option_{place}": (
            _finite(parameter.annotation) if suite else parameter.annotation,
            Field(
                ... if parameter.required and key not in _OF_THE_RECIPE else None,
                alias=key,
            ),
        )
        for place, (key, (parameter, suite)) in enumerate(known.items())
    }
    config = ConfigDict(extra="allow" if signature.opaque else "forbid", strict=True)
    try:
        create_model("Options", __config__=config, **fields).model_validate(dict(options))
    except ValidationError as error:
        faults = error.errors()
        # A misspelt key is the reason why another one is missing.
        fault = min(faults, key=lambda each: each["type"] != "extra_forbidden")
        key = str(fault["loc"][0])
        kinds = {each["type"] for each in faults if each["loc"][0] == key}
        raise UserError(_in_words(name, key, kinds, options, known, above)) from None
    for key in options:
        if key not in known and (key in common_keys() or key in above):
            raise UserError(_belongs_above(key))


def _in_words(
    name: str,
    key: str,
    kinds: Collection[str],
    options: Mapping[str, Any],
    known: Mapping[str, tuple[Parameter, bool]],
    above: Collection[str],
) -> str:
    if "missing" in kinds:
        lacking = [
            f"options.{key}"
            for key, (parameter, _) in known.items()
            if parameter.required and key not in options and key not in _OF_THE_RECIPE
        ]
        return f"strategy = {name!r} wants {' and '.join(lacking)}, which the recipe does not have"
    if "extra_forbidden" in kinds:
        if key in common_keys() or key in above:
            return _belongs_above(key)
        words = f"unknown option {key!r} of strategy = {name!r}: "
        if not known:
            return f"{words}it has no options"
        if len(known) == 1:
            return f"{words}its only option is {next(iter(known))!r}"
        (nearest,) = get_close_matches(key, known, 1, cutoff=0.0)
        return f"{words}the nearest is {nearest!r} (its options are {', '.join(known)})"
    wanted = ranges.wanted(options[key], known[key][0].annotation)
    return f"options.{key} = {options[key]!r} must be {wanted}"


def _belongs_above(key: str) -> str:
    return (
        f"options.{key} is no option: a run gives {key} to every method, from the keys of the "
        "recipe that stand above [options]"
    )


def _finite(annotation: Any) -> Any:
    """The annotation with finite numbers only."""
    if ranges.is_union(annotation):
        return Union[tuple(map(_finite, get_args(annotation)))]  # noqa: UP007
    return ranges.Finite if annotation is float else annotation


def _slip(signature: Signature) -> str | None:
    """What a constructor does wrong with what a run gives to every method."""
    for number, constructor in enumerate(signature.constructors):
        if constructor.opaque:  # and what comes after it is called in a way that is not known
            return None
        if constructor.suite:
            continue
        following = signature.constructors[number + 1 :]
        for slip in (
            *_taken_wrongly(constructor, signature.base),
            *_passed_wrongly(constructor, following, signature.base),
        ):
            return f"{constructor.place} {slip}"
        if not constructor.takes_rest:
            return None
    return None


def _mend(base: _Base) -> str:
    return f"take **settings and pass them on by {_CALL[base]}"


def _taken_wrongly(constructor: Constructor, base: _Base) -> Iterator[str]:
    if not constructor.takes_rest:
        run_keys = common_keys() - _NOT_FROM_RUNS - {"model"}
        of_strategies = {*_OF_AVALANCHE, "optimizer", "schedule", "drop_last", "tensor_stream"}
        needed = run_keys - of_strategies if base == METHOD else run_keys
        for key in (_PASSED_ON[base][0], *sorted(needed)):
            if key not in constructor.names:
                yield f"takes no {key!r}: {_mend(base)}"
    if constructor.passed is None:
        what = "method" if base == METHOD else "strategy"
        yield f"does not make the {what}: begin it with {_CALL[base]}"


def _passed_wrongly(
    constructor: Constructor, following: Sequence[Constructor], base: _Base
) -> Iterator[str]:
    """Faults in what a constructor gives to those that follow it and to the common base."""
    names, passed = constructor.names, constructor.passed or Passed(rest=True)
    at_base = 1 if base == METHOD else 0
    if passed.by_position > (len(following[0].parameters) if following else at_base):
        yield (
            f"passes on by position what the class it is derived from takes by name: {_mend(base)}"
        )
    for key in _PASSED_ON[base]:
        by_position = base == METHOD and passed.by_position
        if not by_position and key not in passed.names and (key in names or not passed.rest):
            yield f"does not pass {key!r} on: {_mend(base)}"
    taken = {*common_keys(), *(name for other in following for name in other.names)}
    for key in passed.names:
        if key in common_keys() and key not in names and passed.rest:
            yield f"passes {key!r} on twice: **settings has it already"
        if key not in taken and not any(other.opaque for other in following):
            yield (
                f"passes {key!r} on, which the class it is derived from does not take: "
                f"pass on no more than {_CALL[base]}"
            )


def not_made(name: str, cls: type[Any], options: Mapping[str, Any], error: Exception) -> UserError:
    """That a strategy's constructor has refused a recipe's options, in its own words."""
    words = outside.in_words(error, cls)
    return UserError(f"strategy = {name!r} with options {dict(options)}: {words}")


def require_base(made: Any) -> None:
    """See that a constructor has called that of the class it is derived from.

    Raises:
        UserError: it has not.
    """
    if not hasattr(made, "model") and not hasattr(made, "network"):
        raise UserError(
            f"{type(made).__name__}.__init__ does not make the strategy: begin it with "
            "super().__init__(**settings)"
        )
