"""From names on the command line to units of work: benchmarks, recipes, the grid and the choice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue
from vcl_radial.runs.settings import Settings
from vcl_radial.tracks.regression.data import RegressionData
from vcl_radial.tracks.regression.sequence import METHODS as CARRIED
from vcl_radial.tracks.regression.settings import Recipe
from vcl_radial.tracks.regression.units import Score, Unit

Grid = list[dict[str, list[Any]]]
"""Tables of values by key: the settings are all combinations within each table."""


Share = Annotated[float, Field(gt=0, le=1)]


def _once(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


class Benchmark(Settings):
    """A benchmark's TOML.

    Attributes:
        description: one line about it.
        sets: names for `load_data`; one that is there twice counts once.
        validation: the share of each training part that settings are chosen on.
        grid: the settings to choose from.
        search_share: the share of its steps with which a setting is tried.
        slices: of a sequence; None for all rows at once.
        methods: the names of the recipes to run where none are named.
        recipe: keys that replace those of the methods' recipes.
    """

    description: str = ""
    sets: Annotated[list[str], Field(min_length=1), AfterValidator(_once)]
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    grid: Grid = Field(default=[])
    search_share: Share = 1.0
    slices: Annotated[int, Field(ge=2)] | None = None
    methods: Annotated[list[str], Field(min_length=1)]
    recipe: dict[str, Any] = Field(default={})


@dataclass(frozen=True)
class Method:
    """A recipe, the settings to choose from, and the share of its steps with which one is tried."""

    name: str
    recipe: Recipe
    grid: Grid
    search_share: float = 1.0

    def settings(self) -> list[dict[str, Any]]:
        """All combinations of each table of the grid; one empty setting without a grid."""
        found: list[dict[str, Any]] = []
        for table in self.grid:
            for values in itertools.product(*table.values()):
                setting = dict(zip(table, values, strict=True))
                if setting not in found:
                    found.append(setting)
        return found or [{}]

    def with_setting(self, setting: Mapping[str, Any]) -> Recipe:
        """The recipe with some keys replaced."""
        return _validated(Recipe, self.recipe.model_dump() | dict(setting), self.name)

    def tried_with(self, setting: Mapping[str, Any]) -> Recipe:
        """The same with the steps of the search."""
        recipe = self.with_setting(setting)
        return recipe.model_copy(update={"steps": max(1, round(recipe.steps * self.search_share))})


def names(kind: catalogue.Kind) -> list[str]:
    """The shipped names of a kind ("benchmark" or "method")."""
    return sorted(path.stem for path in _folder(kind).glob("*.toml"))


def load_benchmark(name: str) -> Benchmark:
    """A shipped benchmark by its name, or a user's own by its path.

    Raises:
        UserError: it is not there, or a key is unknown or a value impossible.
    """
    entry = _load("benchmark", name)
    return _validated(Benchmark, entry.table, str(entry.path))


def load_methods(
    chosen: Sequence[str], benchmark: Benchmark, overrides: Mapping[str, Any]
) -> list[Method]:
    """Recipes by name or path, with the benchmark's keys and the user's own in place of theirs.

    What the user sets is not chosen from the grid.

    Raises:
        UserError: one is not there, a key is unknown or a value impossible, or two share a name.
    """
    if "method" in overrides:  # all would be the same one, each under its own name
        raise UserError("--set method: is not a setting of a recipe; name recipes with --method")
    entries: dict[str, catalogue.Entry] = {}
    for name in chosen:
        entry = _load("method", name)
        other = entries.setdefault(entry.name, entry)
        if other.path.resolve() != entry.path.resolve():  # results are filed under the name
            raise UserError(
                f"{other.path} and {entry.path}: two methods of one name; rename one of the files"
            )
    methods = []
    for name, entry in entries.items():
        table = {k: v for k, v in entry.table.items() if k not in _BESIDE_THE_RECIPE}
        recipe = _validated(Recipe, table | benchmark.recipe | dict(overrides), str(entry.path))
        own = {key: entry.table.get(key, getattr(benchmark, key)) for key in _Search.model_fields}
        search = _validated(_Search, own, str(entry.path))
        free = [{k: v for k, v in part.items() if k not in overrides} for part in search.grid]
        method = Method(entry.name, recipe, [part for part in free if part], search.search_share)
        for setting in method.settings():
            method.with_setting(setting)
        if benchmark.slices is not None and recipe.method not in CARRIED:
            raise UserError(f"{name}: has no posterior that can be carried from slice to slice")
        methods.append(method)
    return methods


class _Search(Settings):
    """Keys of a method's TOML that take the place of the benchmark's."""

    grid: Grid
    search_share: Share


_BESIDE_THE_RECIPE = {"description", *_Search.model_fields}


def validation_units(
    data: RegressionData, method: Method, splits: Sequence[int], share: float, seed: int
) -> list[Unit]:
    """One unit for each setting, scored on rows held out of the training part of each split."""
    return [
        Unit(
            set=data.name,
            method=method.name,
            recipe=method.tried_with(setting),
            splits=list(splits),
            seed=seed,
            validation=share,
            data=data.checksum,
        )
        for setting in method.settings()
    ]


def choose(
    method: Method, splits: Sequence[int], results: Sequence[Sequence[Score]]
) -> dict[int, dict[str, Any]]:
    """The setting with the highest log-likelihood on the held-out rows of each split itself.

    Split by split, for the rows that another split holds out may be this one's test rows.

    Args:
        method: whose settings.
        splits: for which.
        results: the scores of each setting's validation unit, in the order of the settings.
    """
    settings = method.settings()
    scores = [
        {s.split: s.value for s in result if s.metric == "log_likelihood"} for result in results
    ]

    def merit(k: int, split: int) -> float:
        value = scores[k][split]
        return -math.inf if math.isnan(value) else value

    return {
        split: settings[max(range(len(settings)), key=lambda k: merit(k, split))]
        for split in splits
    }


def final_units(
    data: RegressionData,
    method: Method,
    chosen: Mapping[int, dict[str, Any]],
    seed: int,
) -> list[Unit]:
    """Units on all training rows, scored on the test rows; splits of one setting together."""
    units = []
    for setting in method.settings():
        splits = [split for split, own in chosen.items() if own == setting]
        if splits:
            recipe = method.with_setting(setting)
            units.append(
                Unit(
                    set=data.name,
                    method=method.name,
                    recipe=recipe,
                    splits=splits,
                    seed=seed,
                    data=data.checksum,
                )
            )
    return units


def sequence_units(
    data: RegressionData, method: Method, splits: Sequence[int], count: int, seed: int
) -> list[Unit]:
    """The set in slices, and all of it at once with as many steps."""
    recipe = method.recipe
    at_once = recipe.model_copy(update={"steps": recipe.steps * count})
    return [
        Unit(
            set=data.name,
            method=method.name,
            recipe=own,
            splits=list(splits),
            seed=seed,
            slices=parts,
            data=data.checksum,
        )
        for own, parts in ((recipe, count), (at_once, 1))
    ]


def in_words(setting: Mapping[str, Any]) -> str:
    """A setting as text."""
    return ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in setting.items()
    )


def _folder(kind: catalogue.Kind) -> Path:
    return catalogue.folder(kind) / "regression"


def _load(kind: catalogue.Kind, name: str) -> catalogue.Entry:
    if name.endswith(".toml"):
        return catalogue.load(kind, name)
    if name not in names(kind):
        nearest = get_close_matches(name, names(kind), 1, cutoff=0.0)[0]
        raise UserError(
            f"unknown {kind} {name!r}; the nearest is {nearest!r} (choose from "
            f"{', '.join(names(kind))}, or give the path of a .toml file)"
        )
    return catalogue.load(kind, str(_folder(kind) / f"{name}.toml"))


_Model = TypeVar("_Model", bound=Settings)


def _validated(model: type[_Model], table: Mapping[str, Any], where: str) -> _Model:
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"]) or "spec"
        if fault["type"] == "extra_forbidden":
            nearest = get_close_matches(key, model.model_fields, 1, cutoff=0.0)[0]
            words = f"unknown key {key!r}; the nearest known one is {nearest!r}"
        elif fault["type"] == "missing":
            words = f"the key {key!r} is missing"
        else:
            words = f"{key} = {fault['input']!r}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
        raise UserError(f"{where}: {words}") from None
