"""Methods and benchmarks of the referral track by name, or a user's own by path."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from vcl_radial.errors import UserError
from vcl_radial.experiments import catalogue
from vcl_radial.referral.settings import DataSettings, Recipe, Run
from vcl_radial.tracks.settings import Settings

RECIPES: Final = catalogue.folder("method") / "referral"

BENCHMARKS: Final[dict[str, dict[str, Any]]] = {
    "synthetic": {"dataset": "synthetic"},
    "synthetic-cameras": {"dataset": "synthetic", "parts": "site"},
    "eyepacs": {"dataset": "eyepacs-subset", "shifted": ["idrid"]},
    "eyepacs-idrid": {"dataset": "eyepacs-subset", "then": ["idrid"]},
    "eyepacs-sharpness": {"dataset": "eyepacs-subset", "parts": "sharpness"},
}
"""Data by name; those with `parts` or `then` are of sites in sequence.

The synthetic ones need no files, those of EyePACS want the retinopathy folder.
"""


def method_names() -> list[str]:
    """The shipped methods."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def plan(
    benchmark: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    overrides: Mapping[str, Any],
) -> list[Run]:
    """The runs of a command: methods x seeds, validated before any starts.

    Args:
        benchmark: one of `BENCHMARKS`.
        methods: names of recipes, or TOML files.
        seeds: of starts, batches and draws.
        overrides: keys of the recipes, or `data.<key>` of the data, in place of theirs.

    Raises:
        UserError: a name or key is not known, a value is impossible, or two methods share a name.
    """
    if benchmark not in BENCHMARKS:
        raise UserError(f"{benchmark}: no such benchmark; choose from {', '.join(BENCHMARKS)}")
    of_data = {k.removeprefix("data."): v for k, v in overrides.items() if k.startswith("data.")}
    of_recipe = {k: v for k, v in overrides.items() if not k.startswith("data.")}
    data = {**BENCHMARKS[benchmark], **of_data}
    runs: list[Run] = []
    names: set[str] = set()
    for chosen in methods:
        name, table = _recipe(chosen)
        if name in names:
            raise UserError(f"{chosen}: two methods of one name; rename one of the files")
        names.add(name)
        for seed in dict.fromkeys(seeds):
            run = {"benchmark": benchmark, "method": name, "seed": seed, "data": data}
            runs.append(_validated({**run, "recipe": {**table, **of_recipe}}))
    return runs


def _recipe(chosen: str) -> tuple[str, dict[str, Any]]:
    path = Path(chosen) if chosen.endswith(".toml") else RECIPES / f"{chosen}.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = method_names()
        near = get_close_matches(chosen, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"
        raise UserError(f"{chosen}: no such method; {hint} Or name a .toml file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: is no TOML: {error}") from None
    table.pop("description", None)
    return path.stem, table


def _validated(run: dict[str, Any]) -> Run:
    try:
        return Run.model_validate(run)
    except ValidationError as error:
        name = f"{run['benchmark']} x {run['method']}"
        raise UserError(f"{name}: {_in_words(error)}") from None


def _in_words(error: ValidationError) -> str:
    """The first fault in one line, with the mend."""
    fault = error.errors()[0]
    place = [part for part in fault["loc"] if isinstance(part, str)]
    key = ".".join(part for part in place if part != "recipe")
    if fault["type"] == "extra_forbidden":
        tables: dict[str, type[Settings]] = {"recipe": Recipe, "data": DataSettings}
        nearest = get_close_matches(place[-1], tables[place[0]].model_fields, 1, cutoff=0.0)[0]
        return f"unknown key {key!r}; the nearest known one is {nearest!r}"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    is_value = key and not isinstance(fault["input"], dict)
    return f"{key} = {fault['input']!r}: {message}" if is_value else message
