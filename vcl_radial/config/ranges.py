"""Ranges of numbers, as annotations of a constructor's arguments.

    def __init__(self, network, *, gamma: Share = 1.0, rank: Count = 8, **settings): ...

The values of a recipe are checked against these ranges before a run trains. The arguments of a
method are checked when the method is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from numbers import Integral
from operator import ge, gt, le, lt
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Interval
from pydantic import Field

from vcl_radial.errors import bad_value

_FINITE = Field(allow_inf_nan=False)

Finite = Annotated[float, _FINITE]
Positive = Annotated[float, Interval(gt=0), _FINITE]
NotNegative = Annotated[float, Interval(ge=0), _FINITE]
Share = Annotated[float, Interval(ge=0, le=1), _FINITE]
ShareBelowOne = Annotated[float, Interval(ge=0, lt=1), _FINITE]
MOST = 10**12
"""The largest count of units, epochs or bytes; PyTorch's numbers may overflow beyond it."""

Count = Annotated[int, Interval(ge=1, le=MOST)]
CountOrZero = Annotated[int, Interval(ge=0, le=MOST)]

P = ParamSpec("P")
Self = TypeVar("Self")

_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
}


def expected(value: Any, annotation: Any) -> str:
    """Describe what a refused value must be: "a number from 0 to 1", "'all' or 'summed'"."""
    text = _describe(annotation)
    if isinstance(value, int) and value > MOST and text.startswith("a whole number"):
        return f"a whole number of at most {MOST}"
    infinite = isinstance(value, float) and not math.isfinite(value)
    return "a finite number" if infinite and text.startswith("a number") else text


def _describe(annotation: Any) -> str:
    if is_union(annotation):
        parts = [part for part in get_args(annotation) if part in _KINDS or get_origin(part)]
        return " or ".join(map(_describe, parts))
    if get_origin(annotation) is Callable:
        return "a function"
    if get_origin(annotation) is Literal:
        *first, last = map(repr, get_args(annotation))
        return f"{', '.join(first)} or {last}" if first else last
    if get_origin(annotation) is Annotated:
        kind, interval, *_ = get_args(annotation)
        return f"{_KINDS[kind]} {_describe_interval(interval)}"
    return _KINDS[annotation]


def is_union(annotation: Any) -> bool:
    """Whether an annotation is a union."""
    return get_origin(annotation) in (Union, UnionType)


def checked(
    constructor: Callable[Concatenate[Self, P], None],
    key_of: Callable[[Self, str], str] = lambda instance, name: name,
) -> Callable[Concatenate[Self, P], None]:
    """Wrap a constructor so that it first checks its keyword arguments.

    Args:
        constructor: the constructor.
        key_of: the name of an argument in messages.

    Raises:
        UserError: an argument is outside its range; the new constructor raises it.
    """

    @wraps(constructor)
    def construct(self: Self, /, *args: P.args, **settings: P.kwargs) -> None:
        for name, annotation in annotations_of(constructor).items():
            if name in settings and not _holds(annotation, value := settings[name]):
                fault = f"must be {expected(value, annotation)}"
                raise bad_value(key_of(self, name), value, fault)
        constructor(self, *args, **settings)

    return construct


@lru_cache(maxsize=256)
def annotations_of(function: Any) -> dict[str, Any]:
    """Annotations of a function's parameters; empty if one cannot be evaluated."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # a user's annotation may be a name that only type checkers import
        return {}


def checkable(annotation: Any) -> Any:
    """The annotation if values can be checked against it, else `Any`.

    Values can be checked against bool, int, float, str, a `Literal`, a range of this module, and
    unions of these and None.
    """
    if is_union(annotation):
        parts = [checkable(part) for part in get_args(annotation) if part is not NoneType]
        return Any if Any in parts else annotation
    is_range = get_origin(annotation) is Annotated and isinstance(get_args(annotation)[1], Interval)
    known = annotation in _KINDS or is_range or get_origin(annotation) is Literal
    return annotation if known else Any


def _holds(annotation: Any, value: Any) -> bool:
    """Whether a value is in an annotation's range or among its choices; True for other types."""
    if is_union(annotation):
        return any(_holds(part, value) for part in get_args(annotation))
    if annotation is NoneType:
        return value is None
    if get_origin(annotation) is Callable:
        return callable(value)
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if get_origin(annotation) is Annotated:
        kind, interval, *_ = get_args(annotation)
        return (kind is not int or isinstance(value, Integral)) and _is_within(value, interval)
    return True


def _is_within(value: Any, interval: Interval) -> bool:
    bounds = ((gt, interval.gt), (ge, interval.ge), (lt, interval.lt), (le, interval.le))
    try:
        finite = math.isfinite(value)
    except TypeError:  # not a number
        return False
    return finite and all(bound is None or holds(value, bound) for holds, bound in bounds)


def _describe_interval(interval: Interval) -> str:
    if interval.gt is not None:
        return f"above {interval.gt}"
    if interval.le not in (None, MOST):
        return f"from {interval.ge} to {interval.le}"
    return f"of at least {interval.ge}" + (f" and below {interval.lt}" if interval.lt else "")
