"""The best configurations of a sweep as TOML files of methods, and the commands that run them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w

from vcl_radial.config.command_lines import command_line, set_arguments
from vcl_radial.errors import UserError
from vcl_radial.runs import planning
from vcl_radial.sweeps.progress import number_of
from vcl_radial.sweeps.results import SearchResult, SweepResults, TrialResult


def recipe_name(method: str, rank: int = 1) -> str:
    """The name of the file of a configuration, by its rank from 1."""
    return f"best-{method}.toml" if rank == 1 else f"best-{method}-{rank}.toml"


def recipe_text(
    results: SweepResults, search: SearchResult, trial: TrialResult, rank: int = 1
) -> str:
    """A configuration as the TOML of a method."""
    recipe = _with(search.start["recipe"], trial.parameters)
    if "eval_samples" in recipe and "eval_samples" not in trial.parameters:
        # The search does not choose how to predict, so the method's setting is used.
        with suppress(UserError):  # a user's file that has moved
            default = planning.plan(search.benchmark, [search.method], [0])[0]
            recipe["eval_samples"] = default.recipe.eval_samples
    place = "best" if rank == 1 else f"number {rank}"
    head = [
        f"# The {place} of {len(search.trials)} trials of the sweep {results.name}: "
        f"trial {trial.number},",
        f"# {results.objective} {trial.text} on validation data of "
        f"{search.benchmark}, {number_of('seed', int(results.table['seeds']))}.",
    ]
    description = (
        f"{search.method} with the {place} setting of the sweep {results.name} by "
        f"{results.objective}"
    )
    return "\n".join([*head, tomli_w.dumps({"description": description, **recipe})])


def chosen_text(
    results: SweepResults, search: SearchResult, chosen: Mapping[str, Mapping[str, Any]]
) -> str:
    """The TOML of a method with the settings chosen for each key of `chosen`."""
    tables = {unit: _with({}, parameters) for unit, parameters in chosen.items()}
    description = (
        f"{search.method} with the settings that the sweep {results.name} chose for every seed"
    )
    table = {"description": description, **search.start["recipe"], "chosen": tables}
    return f"# By {results.objective} on validation data.\n{tomli_w.dumps(table)}"


def command_for(
    results: SweepResults,
    search: SearchResult,
    path: Path,
    seeds: int,
    parameters: Mapping[str, Any],
) -> str:
    """The command that runs a configuration on test data.

    It sets keys of the benchmark and of the data, which the method's file cannot set.

    Args:
        results: the results of the sweep.
        search: the search of the configuration.
        path: the method's file with the configuration.
        seeds: the number of seeds to run.
        parameters: the configuration.
    """
    track, of_benchmark = results.track, {}
    with suppress(UserError):  # a user's file that has moved
        of_benchmark = planning.recipe_of(search.benchmark)
    fixed = {key: value for key, value in results.table["fixed"].items() if key != "eval_samples"}
    settings = {}
    for key, value in {**fixed, **parameters}.items():
        table, _, inner = key.partition(".")
        of_data = table == track.spec.DATA and inner not in track.search_keys
        if of_data or of_benchmark.get(key, value) != value:
            settings[key] = value
    texts = set_arguments(settings)
    return command_line("run", search.benchmark, method=path, set=texts, seeds=seeds)


def _with(recipe: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the values of a configuration; keys of the data are no part of it."""
    options = {k.removeprefix("options."): v for k, v in parameters.items() if k[:8] == "options."}
    own = {key: value for key, value in parameters.items() if "." not in key}
    options = recipe.get("options", {}) | options
    return {**recipe, **own} | ({"options": options} if options else {})
