"""Write the report of a sweep: the best settings, the importance of keys, and all trials."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import tomli_w

from vcl_radial.config.command_lines import command_line, set_arguments
from vcl_radial.errors import UserError
from vcl_radial.reporting import manifest
from vcl_radial.reporting.blocks import Block, Figure, Report, Section, Table, Text
from vcl_radial.reporting.files import write_files, write_page
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.labels import file_name
from vcl_radial.reporting.provenance import behind
from vcl_radial.runs import planning
from vcl_radial.runs.folder import check_page
from vcl_radial.runs.spec import RunSpec
from vcl_radial.sweeps import figures
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.importance import importances, study_of
from vcl_radial.sweeps.levels import Levels, levels, shares
from vcl_radial.sweeps.progress import number_of
from vcl_radial.sweeps.results import SearchResult, SweepResults, TrialResult, read_results, run_of

if TYPE_CHECKING:
    import optuna


def write_sweep_report(
    path: Path,
    to: Path,
    top: int = 1,
    by: str | None = None,
    command: str | None = None,
) -> None:
    """Write the report of a sweep: a folder per benchmark, and one page.

    Args:
        path: the sweep's folder.
        to: the folder of the report.
        top: number of configurations per method to write as recipes.
        by: the score to rank configurations by; None for the objective of the sweep.
        command: the command line that makes the report.

    Raises:
        UserError: there is nothing to report or no such score, or a file cannot be written.
    """
    page = to / "index.html"
    check_page(page, [manifest.OF_ALL], MARK)
    results = read_results(path, by)
    drawn = []
    searched = [search for search in results.searched if search.trials]
    for benchmark, group in groupby(searched, key=lambda search: search.benchmark):
        folder, searches = to / benchmark, list(group)
        if results.table.get("per_seed", False):
            report = per_seed_report(results, searches, folder)
        else:
            report = report_of(results, searches, folder, top)
        drawn.append(write_files(report, folder, benchmark=benchmark, runs=path))
        for block in report.sections[0].blocks:
            if isinstance(block, Text) and block.style == "code":
                print(f"  {block.text}")
    facts = [("command", [command])] if command is not None else []
    facts += [("folder", [str(path)])]
    write_page(page, drawn, title=results.name, facts=facts, passed_over=[])


def report_of(
    results: SweepResults, searched: Sequence[SearchResult], folder: Path, top: int
) -> Report:
    """The report of the searched methods on one benchmark, with `top` recipes of each."""
    environments = [e for search in searched for e in search.environments]
    notices = dict.fromkeys(notice for e in environments for notice in e.get("notices", []))
    seeds = int(results.table["seeds"])
    spread = f"mean ± standard error over {number_of('seed', seeds)}"
    resplit = ", others for every seed" if results.table.get("resplit") else ""
    note = f"{results.table['kind']} search for {_aim(results)}, validation data{resplit}, {spread}"
    level = levels(searched) if results.objective == results.track.objective else None
    rows = [_row(results, search, level) for search in searched]
    # An outcome that no trial has gets no column.
    columns = [c for c in rows[0] if c not in _ENDS or any(row[c] != "0" for row in rows)]
    description = results.table.get("description")
    blocks: list[Block] = [
        *([Text(str(description))] if description else []),
        Table(columns, [[row[column] for column in columns] for row in rows]),
        Text(f"{note}; {level.explanation}." if level else f"{note}."),
    ]
    for search in searched:
        if best := search.best(results.direction):
            settings = ", ".join(f"{key} = {cell(value)}" for key, value in best.parameters.items())
            path = folder / recipe_name(search)
            blocks += [
                Text(f"Best of {search.method}, trial {best.number}: {settings}."),
                Text(command_for(results, search, path, 5, best.parameters), style="code"),
            ]
    studies = {
        search.method: study_of(search, results.keys, results.direction)
        for search in searched
        if search.best(results.direction)
    }
    matter = {method: importances(study) for method, study in studies.items()}
    blocks += _pictures(results, searched, list(studies.values()), level)
    shares_of_keys = [
        (m, key, share) for m, by_key in matter.items() for key, share in by_key.items()
    ]
    files = {
        "trials.csv": _trials(results, searched),
        "summary.csv": pd.DataFrame(rows).to_csv(index=False),
        "importance.csv": pd.DataFrame(
            shares_of_keys, columns=["method", "key", "importance"]
        ).to_csv(index=False),
    }
    sections = [Section("", blocks, files)]
    sections += [_keys(study, results.label, bool(matter[m])) for m, study in studies.items()]
    recipes = {
        recipe_name(search, rank): recipe_text(results, search, trial, rank)
        for search in searched
        for rank, trial in enumerate(search.ranked(results.direction)[:top], start=1)
    }
    facts = behind(
        environments,
        seeds=range(seeds),
        evaluated_on=["validation"],
        more=[
            ("seed of the search", [str(results.table["seed"])]),
            ("runs", [f"{len(environments)} finished"]),
        ],
    )
    title = f"{results.name}: {searched[0].benchmark}"
    return Report(title, sections, facts, list(notices), recipes)


def per_seed_report(
    results: SweepResults, searched: Sequence[SearchResult], folder: Path
) -> Report:
    """The report of a search that chose settings per seed, with its recipes in a folder.

    The recipe of a method holds the settings of each seed under `[chosen.KEY]`; a table counts how
    often settings were chosen.
    """
    rows: list[list[str]] = []
    counts: list[list[str]] = []
    commands: list[Block] = []
    recipes: dict[str, str] = {}
    for method in dict.fromkeys(search.method for search in searched):
        searches = [search for search in searched if search.method == method]
        bests = [(search, search.best(results.direction)) for search in searches]
        chosen = {str(search.chosen_for): best.parameters for search, best in bests if best}
        trials = [trial for search in searches for trial in search.trials]
        without = sum(trial.score is None for trial in trials)
        rows.append([method, str(len(chosen)), str(len(trials)), str(without)])
        name = f"{method}.toml"
        recipes[name] = chosen_text(results, searches[0], chosen)
        seeds = 1 + max(int(search.start["seed"]) for search in searches)
        command = command_for(results, searches[0], folder / name, seeds, {}, without=results.keys)
        commands.append(Text(command, style="code"))
        settings = [", ".join(f"{k} = {cell(v)}" for k, v in c.items()) for c in chosen.values()]
        counts += [[method, text, str(n)] for text, n in Counter(settings).most_common()]
    summary = (
        f"{results.table['kind']} search for {_aim(results)}, separately for every seed and data "
        "set, on validation data from its training part."
    )
    blocks = [
        Table(["method", "chosen for", "trials", "without a score"], rows),
        Text(summary),
        *commands,
        Table(["method", "settings", "chosen"], counts, "How often settings were chosen"),
    ]
    environments = [e for search in searched for e in search.environments]
    facts = behind(environments, evaluated_on=["validation"])
    section = Section("", blocks, {"trials.csv": _trials(results, searched)})
    title = f"{results.name}: {searched[0].benchmark}"
    return Report(title, [section], facts, files=recipes)


def chosen_text(
    results: SweepResults, search: SearchResult, chosen: Mapping[str, Mapping[str, Any]]
) -> str:
    """The TOML of a method with the settings chosen for each key of `chosen`."""
    tables: dict[str, Any] = {}
    for key, parameters in chosen.items():
        options = {k.removeprefix("options."): v for k, v in parameters.items() if "." in k}
        table = {name: value for name, value in parameters.items() if "." not in name}
        tables[key] = table | ({"options": options} if options else {})
    description = (
        f"{search.method} with the settings that the sweep {results.name} chose for every seed"
    )
    table = {"description": description, **search.start["recipe"], "chosen": tables}
    return f"# By {results.objective} on validation data.\n{tomli_w.dumps(table)}"


def recipe_name(search: SearchResult, rank: int = 1) -> str:
    """The name of the file of a configuration, by its rank from 1."""
    return f"best-{search.method}.toml" if rank == 1 else f"best-{search.method}-{rank}.toml"


def recipe_text(
    results: SweepResults, search: SearchResult, trial: TrialResult, rank: int = 1
) -> str:
    """A configuration as the TOML of a method."""
    recipe: dict[str, Any] = dict(run_of(search.start, trial.parameters).settings()["recipe"])
    default = _default_settings(search)
    default_recipe = {} if default is None else default["recipe"]
    if "eval_samples" in default_recipe and "eval_samples" not in trial.parameters:
        # The search does not choose how to predict, so the method's setting is used.
        recipe["eval_samples"] = default_recipe["eval_samples"]
    spread = "" if trial.standard_error is None else f" +- {trial.standard_error:.3g}"
    head = [
        f"# {'The best' if rank == 1 else f'Number {rank}'} of {len(search.trials)} trials of the "
        f"sweep {results.name}: trial {trial.number},",
        f"# {results.objective} {trial.score:.4g}{spread} on validation data of "
        f"{search.benchmark}, {number_of('seed', int(results.table['seeds']))}.",
    ]
    description = f"{search.method} with the best setting of the sweep {results.name}"
    description += (
        "" if results.objective == results.table["objective"] else f" by {results.objective}"
    )
    description += "" if rank == 1 else f", number {rank}"
    return "\n".join([*head, tomli_w.dumps({"description": description, **recipe})])


def command_for(
    results: SweepResults,
    search: SearchResult,
    path: Path,
    seeds: int,
    parameters: Mapping[str, Any],
    without: Collection[str] = (),
) -> str:
    """The command that runs a configuration on test data.

    It sets keys of the benchmark and of the data, which the method's file cannot set.

    Args:
        results: the results of the sweep.
        search: the search of the configuration.
        path: the method's file with the configuration.
        seeds: the number of seeds to run.
        parameters: the configuration.
        without: keys that the command does not set.
    """
    track, data = results.track, results.track.spec.DATA
    run = run_of(search.start, parameters).settings()
    settings: dict[str, Any] = {}
    try:
        for key, value in planning.recipe_of(search.benchmark).items():
            if run["recipe"].get(key) != value and key not in without:
                settings[key] = run["recipe"].get(key)
    except UserError:
        pass  # a user's benchmark that has moved
    if (default := _default_settings(search)) is not None:
        # The command itself fills in a checksum.
        left_out = {"checksum", *track.search_keys}
        for key, value in run[data].items():
            if default[data].get(key) != value and key not in left_out:
                settings[f"{data}.{key}"] = value
    texts = set_arguments(settings)
    return command_line("run", search.benchmark, method=path, set=texts, seeds=seeds)


def _default_settings(search: SearchResult) -> dict[str, Any] | None:
    """The settings of the method's run without the sweep; None if the method is not found."""
    try:
        run: RunSpec = planning.plan(search.benchmark, [search.method], [0])[0]
    except UserError:
        return None
    return run.settings()


def _pictures(
    results: SweepResults,
    searched: Sequence[SearchResult],
    studies: Sequence[optuna.Study],
    level: Levels | None,
) -> list[Block]:
    """The pictures of all methods together."""
    if not studies:
        return []
    label, direction = results.label, results.direction
    history = partial(figures.history, studies, label)
    draw = partial(figures.distribution, searched, label, level, direction)
    cost = partial(figures.cost_against_score, searched, label, direction)
    shown = Figure("history", history, "The score of every trial, and the best one so far")
    return [
        *([shown] if results.table["kind"] != "grid" else []),  # a grid has no order
        Figure("distribution", draw, f"Share of the configurations by {label}"),
        Figure("cost", cost, f"Seconds of a run by {label}"),
    ]


def _keys(study: optuna.Study, label: str, has_importance: bool) -> Section:
    """The section of a method with its keys."""
    method = study.study_name
    stem = file_name(method)
    blocks = [
        Figure(
            f"slice-{stem}",
            partial(figures.slices, study, label),
            f"The score of {method} over each key",
        ),
        Figure(
            f"parallel-{stem}",
            partial(figures.parallel, study, label),
            f"All configurations of {method}",
        ),
    ]
    if has_importance:
        draw = partial(figures.importance, study)
        alt = f"How much each key of {method} matters for the score"
        blocks.append(Figure(f"importance-{stem}", draw, alt))
    return Section(f"Keys of {method}", blocks)


def _trials(results: SweepResults, searched: Sequence[SearchResult]) -> str:
    """The CSV of all trials with their cost, the best first."""
    rows = [
        {"method": search.method, "chosen_for": search.chosen_for, "trial": trial.number}
        | vars(trial)
        | trial.parameters
        for search in searched
        for trial in search.in_order(results.direction)
    ]
    columns = ["method", "chosen_for", "trial", "outcome", "score", "standard_error", "seconds"]
    table = pd.DataFrame(rows, columns=[*columns, "words", *results.keys], dtype=object)
    if searched[0].chosen_for is None:
        table = table.drop(columns="chosen_for")
    return table.to_csv(index=False)


_ENDS = ("pruned", "diverged", "failed")


def _row(results: SweepResults, search: SearchResult, level: Levels | None) -> dict[str, str]:
    """The formatted results of a method."""
    outcomes = [trial.outcome for trial in search.trials]
    row = {"method": search.method, "trials": str(len(outcomes))}
    row |= {how: str(outcomes.count(how)) for how in _ENDS}
    row |= {"best": "", "median": ""}
    scores = [trial.score for trial in search.ranked(results.direction) if trial.score is not None]
    if scores:
        error = search.ranked(results.direction)[0].standard_error
        row["best"] = f"{scores[0]:.4g}" + (f" ± {error:.2g}" if error is not None else "")
        row["median"] = f"{statistics.median(scores):.4g}"
    if level is not None:
        nothing, good = shares(search, level)
        row |= {"learnt nothing (%)": f"{nothing:.0f}", "good (%)": f"{good:.0f}"}
    row["hours"] = f"{sum(e['seconds'] for e in search.environments) / 3600:.2f}"
    return row


def _aim(results: SweepResults) -> str:
    """The objective of the search, and the score for ranking if it differs from the objective."""
    if results.objective == results.table["objective"]:
        return f"{results.objective} ({results.direction} it)"
    return f"{results.table['objective']}, ranked by {results.objective} ({results.direction} it)"
