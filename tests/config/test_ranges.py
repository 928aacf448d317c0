"""Ranges of numbers: what they hold, and what is said of the rest."""

import math
from typing import Literal

import pytest
from pydantic import TypeAdapter, ValidationError
from torch import nn

from vcl_radial.config import ranges
from vcl_radial.config.ranges import Count, Share
from vcl_radial.errors import UserError
from vcl_radial.methods.naive import Naive

INSIDE = {
    "Positive": (5e-324, 1, 1e300),
    "NotNegative": (0, 1e300),
    "Share": (0, 0.5, 1),
    "ShareBelowOne": (0, 0.999),
    "Count": (1, 10**9),
    "CountOrZero": (0, 10**9),
}
OUTSIDE = {
    "Positive": (0, -1.0, math.inf, math.nan),
    "NotNegative": (-5e-324, math.inf, math.nan),
    "Share": (-0.1, 1.1, math.inf, math.nan),
    "ShareBelowOne": (-0.1, 1, 1.0, math.nan),
    "Count": (0, -1, 2.5, 10**12 + 1),
    "CountOrZero": (-1, 0.5),
}


def method_with(annotation):
    class Mine(Naive):
        def __init__(self, network, *, value=None, other: "NotImported" = 0, **settings):  # noqa: F821
            super().__init__(network, **settings)

    class Annotated(Mine):
        def __init__(self, network, *, value=None, **settings):
            super().__init__(network, value=value, **settings)

    Annotated.__init__.__annotations__["value"] = annotation
    return Annotated


@pytest.mark.parametrize("name", INSIDE)
def test_a_method_is_made_with_what_its_annotation_holds_and_a_recipe_may_have_it(name):
    annotation = getattr(ranges, name)
    cls, field = method_with(annotation), TypeAdapter(annotation)
    for value in INSIDE[name]:
        cls(nn.Linear(1, 1), value=value)
        field.validate_python(value, strict=True)
    for value in (*OUTSIDE[name], None, "1"):
        with pytest.raises(UserError, match=r"^options\.value = .* must be a "):
            cls(nn.Linear(1, 1), value=value)
        with pytest.raises(ValidationError):
            field.validate_python(value, strict=True)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (Share, 2, "2 must be a number from 0 to 1"),
        (Share | None, -1, "-1 must be a number from 0 to 1"),
        (Share, math.nan, "nan must be a finite number"),
        (Count, 10**24, f"{10**24} must be a whole number of at most {10**12}"),
        (Count | Literal["all"], 0, "0 must be a whole number of at least 1 or 'all'"),
        (Literal["near", "far"], "here", "'here' must be 'near' or 'far'"),
    ],
)
def test_what_is_refused_is_said_with_what_it_must_be(annotation, value, message):
    with pytest.raises(UserError, match=f"^options.value = {message}$"):
        method_with(annotation)(nn.Linear(1, 1), value=value)


def test_none_is_for_an_annotation_to_allow_and_other_types_are_let_through():
    method_with(Share | None)(nn.Linear(1, 1), value=None)
    method_with(Count | Literal["all"])(nn.Linear(1, 1), value="all")
    method_with(tuple[int, ...])(nn.Linear(1, 1), value="anything")
