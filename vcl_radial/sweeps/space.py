"""The search space: for each key of a recipe what it may be, and when it is searched at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Field, field_validator, model_validator

from vcl_radial.config.ranges import Finite
from vcl_radial.errors import UserError
from vcl_radial.runs.settings import Settings

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution

_MOST = 100_000  # configurations of a grid
_EXACT = 2**53  # beyond it a float is no longer every whole number
Scalar: TypeAlias = str | bool | int | float
Value: TypeAlias = Scalar | list[Scalar]
Whole = Annotated[int, Field(ge=-_EXACT, le=_EXACT)]
Parameters: TypeAlias = dict[str, Any]
"""A configuration: the keys that were searched, with their values."""

_CASE = " / "
"""Between a key and the number of its case in the names that Optuna knows."""


class Condition(Settings):
    """A key is searched only where other keys have these values (or one of a list of them)."""

    when: dict[str, Value] = Field(default={})

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is searched where the other keys have these values."""
        return all(
            values.get(key) in (wanted if isinstance(wanted, list) else [wanted])
            for key, wanted in self.when.items()
        )


class Choices(Condition):
    """One of a list."""

    choices: Annotated[list[Value], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> Choices:
        plain = [_plain(choice) for choice in self.choices]
        for number, choice in enumerate(plain):
            if choice in plain[:number] or choice != choice:  # noqa: PLR0124 (not a number)
                raise ValueError(f"the choice {choice!r} is there twice, or is not a number")
        return self

    def extremes(self) -> list[Any]:
        """The values that show whether all are possible."""
        return list(self.choices)

    def suggest(self, trial: Trial, key: str) -> Any:
        """A value drawn by a trial."""
        stored = trial.suggest_categorical(key, list(map(_plain, self.choices)))
        return next(choice for choice in self.choices if _plain(choice) == stored)

    def distribution(self) -> BaseDistribution:
        """As Optuna knows it; lists, which it does not know, are there as JSON."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(list(map(_plain, self.choices)))


class Range(Condition):
    """A number between two, both included; whole where both are whole.

    With `log` its logarithm is spread evenly.
    """

    low: Whole | Finite
    high: Whole | Finite
    log: bool = False

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        # Said once for both kinds of numbers; pydantic would say of "nan" that it is not whole.
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

    def extremes(self) -> list[Any]:
        """The values that show whether all are possible."""
        return [self.low, self.high]

    def suggest(self, trial: Trial, key: str) -> Any:
        """A value drawn by a trial."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(key, self.low, self.high, log=self.log)
        return trial.suggest_float(key, float(self.low), float(self.high), log=self.log)

    def distribution(self) -> BaseDistribution:
        """As Optuna knows it."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(float(self.low), float(self.high), log=self.log)


class Case(Choices):
    """One of a list, where other keys have certain values."""

    when: Annotated[dict[str, Value], Field(min_length=1)]


class Cases(Settings):
    """Other choices for other values of another key: those of the first case that holds."""

    cases: Annotated[list[Case], Field(min_length=1)]

    @property
    def when(self) -> dict[str, Value]:
        """The keys that the conditions name."""
        return {key: value for case in self.cases for key, value in case.when.items()}

    @property
    def choices(self) -> list[Value]:
        """Those of all cases, each once."""
        of_all = {_plain(choice): choice for case in self.cases for choice in case.choices}
        return list(of_all.values())

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is searched where the other keys have these values."""
        return any(case.holds(values) for case in self.cases)

    def extremes(self) -> list[Any]:
        """The values that show whether all are possible."""
        return self.choices

    def distribution(self) -> BaseDistribution:
        """As Optuna knows it when it looks at finished trials."""
        return Choices(choices=self.choices).distribution()

    def case(self, values: Mapping[str, Any]) -> tuple[int, Case]:
        """The number, from 1, and the choices of the case that holds."""
        numbered = enumerate(self.cases, start=1)
        return next((number, case) for number, case in numbered if case.holds(values))


Searchable: TypeAlias = Choices | Range | Cases
"""What a key may be."""


@dataclass(frozen=True)
class Space:
    """What is searched on one benchmark with one method.

    Attributes:
        keys: what each key may be, every key after those that its condition names.
        base: what all keys are where they are not searched, dotted (`options.strength`).
    """

    keys: Mapping[str, Searchable]
    base: Mapping[str, Any]

    def draw(self, trial: Trial) -> Parameters:
        """A configuration drawn by a trial."""
        drawn: Parameters = {}
        for key, what in self.keys.items():
            values = {**self.base, **drawn}
            if not what.holds(values):
                continue
            if isinstance(what, Cases):
                # To Optuna a key of one name has one list of choices in all trials.
                number, case = what.case(values)
                drawn[key] = case.suggest(trial, f"{key}{_CASE}{number}")
            else:
                drawn[key] = what.suggest(trial, key)
        return drawn

    def grid(self) -> list[Parameters]:
        """All configurations of a space of choices; the last key goes fastest.

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
        """Configurations that together have all extremes of every key, wherever it is searched.

        All combinations of the keys that conditions name, with one extreme after another of the
        rest.
        """
        extremes = max((len(what.extremes()) for what in self.keys.values()), default=1)
        of_all = (self._combinations([*self.keys], {}, index) for index in range(extremes))
        distinct = {json.dumps(encoded(each)): each for of_one in of_all for each in of_one}
        return tuple(distinct.values())

    def _combinations(
        self, keys: Sequence[str], chosen: Parameters, index: int | None = None
    ) -> Iterator[Parameters]:
        """With an index, keys that no condition names have the extreme there alone."""
        if not keys:
            yield chosen
            return
        first, *rest = keys
        what = self.keys[first]
        values = {**self.base, **chosen}
        if what.holds(values):
            case = what.case(values)[1] if isinstance(what, Cases) else what
            choices = case.extremes()
            if index is not None and not any(first in key.when for key in self.keys.values()):
                choices = [choices[index % len(choices)]]
            for choice in choices:
                yield from self._combinations(rest, {**chosen, first: choice}, index)
        else:
            yield from self._combinations(rest, chosen, index)


def key_of(name: str) -> str:
    """The key that Optuna knows by this name."""
    return name.split(_CASE, maxsplit=1)[0]


def encoded(parameters: Parameters) -> Parameters:
    """A configuration as Optuna stores it."""
    return {key: _plain(value) for key, value in parameters.items()}


def in_order(keys: Mapping[str, Searchable]) -> dict[str, Searchable]:
    """The keys, each after those that its condition names, else as they were.

    Raises:
        ValueError: conditions go round in a circle.
    """
    ordered: dict[str, Searchable] = {}
    left = dict(keys)
    while left:
        free = [key for key, what in left.items() if not what.when.keys() & left.keys()]
        if not free:
            raise ValueError(f"search.{next(iter(left))}: its `when` depends on itself")
        ordered[free[0]] = left.pop(free[0])
    return ordered


def _plain(value: Value) -> Scalar:
    return json.dumps(value) if isinstance(value, list) else value
