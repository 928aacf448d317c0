"""Methods and benchmarks of the referral track by name, or a user's own by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue
from vcl_radial.runs.catalogue import Entry
from vcl_radial.tracks.retinopathy.settings import DataSettings, Recipe, Run
from vcl_radial.tracks.settings import Settings

RECIPES: Final = catalogue.folder("method") / "referral"

BENCHMARKS: Final[dict[str, dict[str, Any]]] = {
    "synthetic": {"dataset": "synthetic"},
    "synthetic-cameras": {"dataset": "synthetic", "parts": "site"},
    "idrid": {"dataset": "idrid", "size": 96, "split": "published", "validation": 0.25},
    "eyepacs": {"dataset": "eyepacs-subset", "size": 96, "shifted": ["idrid"]},
    "eyepacs-idrid": {"dataset": "eyepacs-subset", "size": 96, "then": ["idrid"]},
    "eyepacs-sharpness": {"dataset": "eyepacs-subset", "size": 96, "parts": "sharpness"},
}
"""Data by name; those with `parts` or `then` are of sites in sequence.

The synthetic ones need no files, the others want the retinopathy folder.
"""

_BENCHMARK_KEYS: Final = {"description", "data", "recipe"}


def method_names() -> list[str]:
    """The shipped methods."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def load_benchmark(name: str) -> Entry:
    """A benchmark by its name, or a user's own by its path: [data], and [recipe] for all methods.

    Raises:
        UserError: it is not there, not readable, or has another key.
    """
    if name.endswith(".toml"):
        entry = catalogue.load("benchmark", name)
        catalogue.check_keys(entry, _BENCHMARK_KEYS)
        return entry
    if name not in BENCHMARKS:
        raise UserError(
            f"{name}: no such benchmark; choose from {', '.join(BENCHMARKS)} "
            "(or give the path of a .toml file)"
        )
    return Entry(name, Path(name), {"data": BENCHMARKS[name]})


def plan(
    benchmark: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    overrides: Mapping[str, Any],
    tuned: bool = False,
) -> list[Run]:
    """The runs of a command: methods x seeds, validated before any starts.

    Args:
        benchmark: one of `BENCHMARKS`, or a TOML file.
        methods: names of recipes, or TOML files.
        seeds: of starts, batches and draws.
        overrides: keys of the recipes, `data.<key>` of the data, or `evaluate_on`, in place of
            theirs.
        tuned: with what a search found for each method, [tuned.BENCHMARK] of its TOML.

    Raises:
        UserError: a name or key is not known, a value is impossible, two methods share a name, or a
            method was not tuned on the benchmark.
    """
    bench = load_benchmark(benchmark)
    of_data = {k.removeprefix("data."): v for k, v in overrides.items() if k.startswith("data.")}
    of_run = {k: v for k, v in overrides.items() if k == "evaluate_on"}
    of_recipe = {
        k: v for k, v in overrides.items() if not k.startswith("data.") and k not in of_run
    }
    data = {**catalogue.section(bench, "data"), **of_data}
    runs: list[Run] = []
    names: set[str] = set()
    for chosen in dict.fromkeys(methods):
        method = _method(chosen)
        if method.name in names:
            raise UserError(f"{chosen}: two methods of one name; rename one of the files")
        names.add(method.name)
        recipe = method.recipe | dict(catalogue.section(bench, "recipe"))
        if tuned:
            recipe |= catalogue.section(method, *catalogue.tuned_keys(method, bench.name))
        for seed in dict.fromkeys(seeds):
            run = {"benchmark": bench.name, "method": method.name, "seed": seed, **of_run}
            runs.append(validated({**run, "data": data, "recipe": recipe | of_recipe}))
    return runs


def validated(run: Mapping[str, Any]) -> Run:
    """A run from plain tables.

    Raises:
        UserError: a key is unknown or a value impossible; it names the key and the nearest name.
    """
    try:
        return Run.model_validate(run)
    except ValidationError as error:
        name = f"{run['benchmark']} x {run['method']}"
        raise UserError(f"{name}: {_in_words(error)}") from None


def _method(chosen: str) -> Entry:
    """A method by its name, or a user's own by its path."""
    known = method_names()
    if not chosen.endswith(".toml") and chosen not in known:
        near = get_close_matches(chosen, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"
        raise UserError(f"{chosen}: no such method; {hint} (or give the path of a .toml file)")
    return catalogue.load(
        "method", chosen if chosen not in known else str(RECIPES / f"{chosen}.toml")
    )


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
