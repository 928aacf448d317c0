"""The search space: the domain of each searched key of a recipe, and its condition."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from vcl_radial.config.ranges import Finite
from vcl_radial.errors import UserError
from vcl_radial.runs.settings import Settings

if TYPE_CHECKING:
    from optuna import Trial

_MOST = 100_000  # largest number of configurations of a grid
_EXACT = 2**53  # larger whole numbers are not exact as floats
Scalar: TypeAlias = str | bool | int | float
Value: TypeAlias = Scalar | list[Scalar]
Whole = Annotated[int, Field(ge=-_EXACT, le=_EXACT)]
Parameters: TypeAlias = dict[str, Any]
"""A configuration: the values of the searched keys."""

_CASE = " / "
"""The separator of a key and the number of its case in Optuna's names."""


class Condition(Settings):
    """The condition of a key: it is searched if other keys have these values (or one of a list)."""

    when: dict[str, Value] = Field(default={})

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the key is searched, given the values of the other keys."""
        return all(
            values.get(key) in (allowed if isinstance(allowed, list) else [allowed])
            for key, allowed in self.when.items()
        )

    def case(self, values: Mapping[str, Any]) -> tuple[Self, str]:
        """The domain for these values of the other keys, and the suffix of its name in Optuna."""
        return self, ""


class Choices(Condition):
    """A domain of listed values."""

    choices: Annotated[list[Value], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Choices:
        plain = [_plain(choice) for choice in self.choices]
        for number, choice in enumerate(plain):
            if choice in plain[:number] or choice != choice:  # noqa: PLR0124 (not a number)
                raise ValueError(f"the choice {choice!r} is there twice, or is not a number")
        return self

    def extremes(self) -> list[Any]:
        """The values to check: if they are valid, all values are."""
        return list(self.choices)

    def suggest(self, trial: Trial, key: str) -> Any:
        """Draw a value for a trial."""
        stored = trial.suggest_categorical(key, list(map(_plain, self.choices)))
        return next(choice for choice in self.choices if _plain(choice) == stored)


class Range(Condition):
    """A domain of numbers from `low` to `high`; whole numbers if both are whole.

    With `log` the logarithm is uniform.
    """

    low: Whole | Finite
    high: Whole | Finite
    log: bool = False

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        # One message for both kinds of numbers; pydantic would report that "nan" is not whole.
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and not (isinstance(value, float) and math.isfinite(value)):
            raise ValueError("must be a finite number")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Range:
        if not self.low < self.high:
            raise ValueError(f"low = {self.low} must be less than high = {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low = {self.low} must be above 0 where log = true")
        return self

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are whole."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def extremes(self) -> list[Any]:
        """The values to check: if they are valid, all values are."""
        return [self.low, self.high]

    def suggest(self, trial: Trial, key: str) -> Any:
        """Draw a value for a trial."""
        if self.is_whole:
            return trial.suggest_int(key, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(key, float(self.low), float(self.high), log=self.log)


class Case(Choices):
    """A domain of listed values with a condition."""

    when: Annotated[dict[str, Value], Field(min_length=1)]


class Cases(Settings):
    """A domain whose choices depend on other keys: the choices of the first case that holds."""

    cases: Annotated[list[Case], Field(min_length=1)]

    @property
    def when(self) -> dict[str, Value]:
        """The keys that the conditions name."""
        return {key: value for case in self.cases for key, value in case.when.items()}

    @property
    def choices(self) -> list[Value]:
        """The choices of all cases, without duplicates."""
        unique = {_plain(choice): choice for case in self.cases for choice in case.choices}
        return list(unique.values())

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether the key is searched, given the values of the other keys."""
        return any(case.holds(values) for case in self.cases)

    def extremes(self) -> list[Any]:
        """The values to check: if they are valid, all values are."""
        return self.choices

    def suggest(self, trial: Trial, key: str) -> Any:
        """Give a finished trial its value, which may be of any case."""
        return Choices(choices=self.choices).suggest(trial, key)

    def case(self, values: Mapping[str, Any]) -> tuple[Case, str]:
        """The case that holds, and the suffix of its name in Optuna.

        For Optuna a name has the same choices in all trials, so each case has a name.
        """
        number, case = next(n for n in enumerate(self.cases, start=1) if n[1].holds(values))
        return case, f"{_CASE}{number}"


Searchable: TypeAlias = Choices | Range | Cases
"""The domain of a key."""


@dataclass(frozen=True)
class Space:
    """The search space of one method on one benchmark.

    Attributes:
        keys: the domain of each key; a key comes after the keys that its condition names.
        base: values of keys that are not searched, with dotted names (`options.strength`).
    """

    keys: Mapping[str, Searchable]
    base: Mapping[str, Any]

    def draw(self, trial: Trial) -> Parameters:
        """Draw a configuration for a trial."""
        drawn: Parameters = {}
        for key, domain in self.keys.items():
            values = {**self.base, **drawn}
            if domain.holds(values):
                case, suffix = domain.case(values)
                drawn[key] = case.suggest(trial, key + suffix)
        return drawn

    def grid(self) -> list[Parameters]:
        """All configurations of a space of choices; the last key varies fastest.

        Raises:
            UserError: there are too many of them.
        """
        first = list(islice(self._combinations(list(self.keys), {}), _MOST + 1))
        if len(first) > _MOST:
            raise UserError(
                f"[search] has a grid of more than {_MOST} configurations: leave choices out, or "
                "search with kind = 'random' or 'tpe'"
            )
        return first

    @cached_property
    def examples(self) -> tuple[Parameters, ...]:
        """Configurations that together have all extremes of every key under each condition.

        The configurations are all combinations of the keys that conditions name, with successive
        extremes of the other keys.
        """
        extremes = max((len(domain.extremes()) for domain in self.keys.values()), default=1)
        groups = (self._combinations([*self.keys], {}, index) for index in range(extremes))
        distinct = {json.dumps(encoded(example)): example for g in groups for example in g}
        return tuple(distinct.values())

    def _combinations(
        self, keys: Sequence[str], chosen: Parameters, index: int | None = None
    ) -> Iterator[Parameters]:
        """Yield combinations; with an index, keys outside all conditions have that extreme only."""
        if not keys:
            yield chosen
            return
        first, *rest = keys
        domain = self.keys[first]
        values = {**self.base, **chosen}
        if domain.holds(values):
            choices = domain.case(values)[0].extremes()
            if index is not None and not any(first in key.when for key in self.keys.values()):
                choices = [choices[index % len(choices)]]
            for choice in choices:
                yield from self._combinations(rest, {**chosen, first: choice}, index)
        else:
            yield from self._combinations(rest, chosen, index)


def key_of(name: str) -> str:
    """The key of a name in Optuna."""
    return name.split(_CASE, maxsplit=1)[0]


def encoded(parameters: Parameters) -> Parameters:
    """A configuration in the form that Optuna stores."""
    return {key: _plain(value) for key, value in parameters.items()}


def in_order(keys: Mapping[str, Searchable]) -> dict[str, Searchable]:
    """Sort the keys so that each key comes after the keys that its condition names.

    Raises:
        ValueError: the conditions form a circle.
    """
    ordered: dict[str, Searchable] = {}
    rest = dict(keys)
    while rest:
        free = [key for key, domain in rest.items() if not domain.when.keys() & rest.keys()]
        if not free:
            raise ValueError(f"search.{next(iter(rest))}: its `when` depends on itself")
        ordered[free[0]] = rest.pop(free[0])
    return ordered


def _plain(value: Value) -> Scalar:
    return json.dumps(value) if isinstance(value, list) else value
