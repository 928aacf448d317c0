"""The report of a sweep: what is best, what it depends on, and what stands behind it."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w

from vcl_radial.config.command_lines import command_line, settings_in_words
from vcl_radial.errors import UserError
from vcl_radial.reporting import manifest
from vcl_radial.reporting.files import write_files, write_page
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.provenance import behind
from vcl_radial.runs import planning
from vcl_radial.runs.folder import check_page, write_atomically
from vcl_radial.runs.sections import Block, Figure, Report, Section, Table, Text
from vcl_radial.runs.track import AnyTrack
from vcl_radial.sweeps import figures
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.importance import importances
from vcl_radial.sweeps.levels import Levels, levels, shares
from vcl_radial.sweeps.progress import number_of
from vcl_radial.sweeps.results import SearchResult, SweepResults, TrialResult, read_results, run_of


def write_sweep_report(
    path: Path,
    to: Path,
    top: int = 1,
    by: str | None = None,
    command: str | None = None,
) -> None:
    """Write the report of a sweep, for each of its benchmarks in a folder of its own; one page.

    Args:
        path: the sweep's folder.
        to: where to write.
        top: configurations of each method that are written down as recipes.
        by: the score to rank configurations by; None for the one that was searched for.
        command: what made the report, in words.

    Raises:
        UserError: there is nothing to report or no such score, or a file cannot be written.
    """
    page = to / "index.html"
    check_page(page, [manifest.OF_ALL], MARK)
    results = read_results(path, by)
    of_benchmarks: dict[str, list[SearchResult]] = {}
    for one in results.searched:
        if one.trials:
            of_benchmarks.setdefault(one.benchmark, []).append(one)
    per_seed = results.table.get("per_seed", False)
    leveled = results.objective == results.track.objective and not per_seed
    drawn = []
    for benchmark, searched in of_benchmarks.items():
        place = to / benchmark
        if per_seed:
            report = per_seed_report(results, benchmark, searched, place)
        else:
            level = levels(searched) if leveled else None
            report = report_of(results, benchmark, searched, place, level)
            report = replace(report, files=_recipes(results, searched, top))
        drawn.append(write_files(report, place, benchmark=benchmark, runs=path))
        for block in report.sections[0].blocks:
            if isinstance(block, Text) and block.style == "code":
                print(f"  {block.words}")
    facts = [("command", [command])] if command is not None else []
    facts += [("folder", [str(path)])]
    write_page(page, drawn, title=results.name, facts=facts, passed_over=[])


def _recipes(results: SweepResults, searched: Sequence[SearchResult], top: int) -> dict[str, str]:
    return {
        recipe_name(one, rank): recipe_text(results, one, trial, rank)
        for one in searched
        for rank, trial in enumerate(one.ranked(results.direction)[:top], start=1)
    }


def report_of(
    results: SweepResults,
    benchmark: str,
    searched: Sequence[SearchResult],
    place: Path,
    level: Levels | None,
) -> Report:
    """The report of the methods that were searched on one benchmark; its recipes are in `place`."""
    environments = [e for one in searched for e in one.environments]
    notices = dict.fromkeys(words for e in environments for words in e.get("notices", []))
    seeds = int(results.table["seeds"])
    spread = f"mean ± standard error over {number_of('seed', seeds)}"
    others = ", others for every seed" if results.table.get("resplit") else ""
    note = f"{results.table['kind']} search for {_aim(results)}, validation data{others}, {spread}"
    table = importances(searched, results.keys, results.direction)
    rows = _rows(results, searched, level)
    blocks: list[Block] = [
        *([Text(str(results.table["description"]))] if results.table.get("description") else []),
        _shown(rows),
        Text(f"{note}; {level.words}." if level else f"{note}."),
        *(block for one in searched for block in _best(results, one, place)),
        *_pictures(results, searched, level),
    ]
    if len(table):
        draw = partial(figures.importance, table)
        blocks.append(Figure("importance", draw, "How much each key matters for the score"))
    files = {
        "trials.csv": _trials(results, searched),
        "summary.csv": pd.DataFrame(rows).to_csv(index=False),
        "importance.csv": table.to_csv(index=False),
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
    title = f"{results.name}: {benchmark}"
    return Report(title, [Section("", blocks, files)], facts, list(notices))


def per_seed_report(
    results: SweepResults, benchmark: str, searched: Sequence[SearchResult], place: Path
) -> Report:
    """The report of a search that chose settings for every seed, with its recipes in a folder.

    The recipe of a method holds the settings of each seed under `[chosen.KEY]`; how often which
    ones were chosen is a table.

    Raises:
        UserError: a recipe cannot be written.
    """
    rows: list[list[str]] = []
    counts: list[list[str]] = []
    commands: list[Block] = []
    for method in dict.fromkeys(one.method for one in searched):
        of_method = [one for one in searched if one.method == method]
        bests = [(one, one.best(results.direction)) for one in of_method]
        chosen = {str(one.chosen_for): best.parameters for one, best in bests if best}
        tried = [trial for one in of_method for trial in one.trials]
        without = sum(trial.score is None for trial in tried)
        rows.append([method, str(len(chosen)), str(len(tried)), str(without)])
        path = place / f"{method}.toml"
        write_atomically(path, chosen_text(results, of_method[0], chosen))
        commands.append(Text(_chosen_command(results, of_method, path), style="code"))
        settings = [", ".join(f"{k} = {cell(v)}" for k, v in c.items()) for c in chosen.values()]
        counts += [[method, words, str(n)] for words, n in Counter(settings).most_common()]
    words = (
        f"{results.table['kind']} search for {_aim(results)}, for every seed and data set by "
        "itself, on validation data of its own training part."
    )
    blocks = [
        Table(["method", "chosen for", "trials", "without a score"], rows),
        Text(words),
        *commands,
        Table(["method", "settings", "chosen"], counts, "How often which settings were chosen"),
    ]
    environments = [e for one in searched for e in one.environments]
    facts = behind(environments, evaluated_on=["validation"])
    files = {"trials.csv": _trials(results, searched)}
    return Report(f"{results.name}: {benchmark}", [Section("", blocks, files)], facts)


def chosen_text(
    results: SweepResults, one: SearchResult, chosen: Mapping[str, Mapping[str, Any]]
) -> str:
    """The TOML of a method with the settings that were chosen for each key of `chosen`."""
    tables: dict[str, Any] = {}
    for key, parameters in chosen.items():
        options = {k.removeprefix("options."): v for k, v in parameters.items() if "." in k}
        table = {name: value for name, value in parameters.items() if "." not in name}
        tables[key] = table | ({"options": options} if options else {})
    description = (
        f"{one.method} with the settings that the sweep {results.name} chose for every seed"
    )
    table = {"description": description, **one.start["recipe"], "chosen": tables}
    return f"# By {results.objective} on validation data.\n{tomli_w.dumps(table)}"


def _chosen_command(results: SweepResults, of_method: Sequence[SearchResult], path: Path) -> str:
    """The command that runs what was chosen on test data.

    Keys that the benchmark sets, and those of the data, are not the method's to set.
    """
    benchmark, data = of_method[0].benchmark, results.track.spec.DATA
    try:
        set_by_benchmark = planning.recipe_of(benchmark)
    except UserError:  # of the user's own, and elsewhere by now
        set_by_benchmark = {}
    left_out = {f"{data}.{key}" for key in results.track.search_keys}
    settings = {
        key: value
        for key, value in results.table["fixed"].items()
        if key not in left_out and (key.startswith(f"{data}.") or key in set_by_benchmark)
    }
    seeds = 1 + max(int(one.start["seed"]) for one in of_method)
    return _command(benchmark, path, settings, seeds)


def _command(benchmark: str, path: Path, settings: Mapping[str, Any], seeds: int) -> str:
    words = settings_in_words(settings)
    return command_line("run", benchmark, method=path, set=words, seeds=seeds)


def recipe_name(one: SearchResult, rank: int) -> str:
    """The file of the configuration of a rank, from 1."""
    return f"best-{one.method}.toml" if rank == 1 else f"best-{one.method}-{rank}.toml"


def recipe_text(results: SweepResults, one: SearchResult, trial: TrialResult, rank: int = 1) -> str:
    """A configuration as the TOML of a method."""
    recipe: dict[str, Any] = dict(run_of(one.start, trial.parameters, 0).settings()["recipe"])
    own = _own(results.track, one)
    of_method = {} if own is None else own["recipe"]
    if "eval_samples" in of_method and "eval_samples" not in trial.parameters:
        # How a prediction is made is no part of the search: as the method has it.
        recipe["eval_samples"] = of_method["eval_samples"]
    spread = "" if trial.standard_error is None else f" +- {trial.standard_error:.3g}"
    place = "The best" if rank == 1 else f"Number {rank}"
    head = [
        f"# {place} of {len(one.trials)} trials of the sweep {results.name}: trial {trial.number},",
        f"# {results.objective} {trial.score:.4g}{spread} on validation data of {one.benchmark}, "
        f"{number_of('seed', int(results.table['seeds']))}.",
    ]
    description = f"{one.method} with the best setting of the sweep {results.name}"
    description += (
        "" if results.objective == results.table["objective"] else f" by {results.objective}"
    )
    description += "" if rank == 1 else f", number {rank}"
    return "\n".join([*head, tomli_w.dumps({"description": description, **recipe})])


def best_command(track: AnyTrack, one: SearchResult, best: TrialResult, place: Path) -> str:
    """The command that runs the best configuration on test data.

    Keys that the benchmark's own TOML sets, and those of the data, are not the method's to set.
    """
    run = run_of(one.start, best.parameters, 0).settings()
    settings: dict[str, Any] = {}
    own = _own(track, one)
    try:
        for key, value in planning.recipe_of(one.benchmark).items():
            if run["recipe"].get(key) != value:
                settings[key] = run["recipe"].get(key)
        # A checksum is filled in by the command itself.
        left_out = {"checksum", *track.search_keys}
        for key, value in run[track.spec.DATA].items():
            if own is not None and own[track.spec.DATA].get(key) != value and key not in left_out:
                settings[f"{track.spec.DATA}.{key}"] = value
    except UserError:
        pass  # a benchmark of the user's own that lies elsewhere by now
    return _command(one.benchmark, place / f"best-{one.method}.toml", settings, 5)


def _own(track: AnyTrack, one: SearchResult) -> dict[str, Any] | None:
    """What the method's run would be without the sweep; None if the method is not found."""
    try:
        own: dict[str, Any] = planning.plan(one.benchmark, [one.method], [0])[0].settings()
    except UserError:
        return None
    return own


def _best(results: SweepResults, one: SearchResult, place: Path) -> list[Block]:
    """The best settings of a method, and the command that runs them on test data."""
    best = one.best(results.direction)
    if best is None:
        return []
    settings = ", ".join(f"{key} = {cell(value)}" for key, value in best.parameters.items())
    command = best_command(results.track, one, best, place)
    words = f"Best of {one.method}, trial {best.number}: {settings}."
    return [Text(words), Text(command, style="code")]


def _pictures(
    results: SweepResults, searched: Sequence[SearchResult], level: Levels | None
) -> list[Block]:
    words, direction = results.words, results.direction
    scored = [one for one in searched if one.best(direction) is not None]
    if not scored:
        return []
    up = direction == "maximize"
    draw = partial(figures.distribution, searched, words, level, higher_is_better=up)
    cost = partial(figures.cost_against_score, searched, words, direction)
    shown: list[Block] = [
        Figure("distribution", draw, f"Share of the configurations by {words}"),
        Figure("cost", cost, f"Seconds of a run by {words}"),
    ]
    for one in scored:
        stem = re.sub(r"[^a-zA-Z0-9_.=-]+", "_", one.method)
        if results.table["kind"] == "grid" and figures.numbers_of(one):
            alt = f"The score of {one.method} along each number, a line for the other settings"
            shown.append(Figure(f"along-{stem}", partial(figures.along_numbers, one, words), alt))
        of_method = partial(figures.parallel, one, results.keys, words, direction)
        shown.append(Figure(f"parallel-{stem}", of_method, f"All configurations of {one.method}"))
    return shown


def _trials(results: SweepResults, searched: Sequence[SearchResult]) -> str:
    """All trials with their cost, the best first."""
    columns = ["method", *(["chosen_for"] if searched[0].chosen_for is not None else [])]
    columns += ["trial", "outcome", "score", "standard_error", "seconds", "words"]
    rows = []
    for one in searched:
        ranked = one.ranked(results.direction)
        for trial in [*ranked, *(trial for trial in one.trials if trial.score is None)]:
            values = vars(trial) | {"trial": trial.number, "method": one.method}
            values["chosen_for"] = one.chosen_for
            parameters = [trial.parameters.get(key) for key in results.keys]
            rows.append([cell(value) for value in (*(values[c] for c in columns), *parameters)])
    return pd.DataFrame(rows, columns=[*columns, *results.keys]).to_csv(index=False)


def _rows(
    results: SweepResults, searched: Sequence[SearchResult], level: Levels | None
) -> list[dict[str, str]]:
    """What came of each method, as it is printed."""
    rows = []
    for one in searched:
        outcomes = [trial.outcome for trial in one.trials]
        best = one.best(results.direction)
        scores = [trial.score for trial in one.trials if trial.score is not None]
        row = {"method": one.method, "trials": str(len(outcomes))}
        row |= {how: str(outcomes.count(how)) for how in _ENDS}
        row["best"] = row["median"] = ""
        if best is not None and best.score is not None:
            spread = "" if best.standard_error is None else f" ± {best.standard_error:.2g}"
            row["best"] = f"{best.score:.4g}{spread}"
            row["median"] = f"{statistics.median(scores):.4g}"
        if level is not None:
            share = shares(one, level)
            row["learnt nothing (%)"] = f"{share.nothing:.0f}"
            row["good (%)"] = f"{share.good:.0f}"
        row["hours"] = f"{sum(e['seconds'] for e in one.environments) / 3600:.2f}"
        rows.append(row)
    return rows


_ENDS = ("pruned", "diverged", "failed")


def _shown(rows: Sequence[dict[str, str]]) -> Table:
    """The rows as a table; columns of how trials ended that hold nothing but zeros are left out."""
    columns = [c for c in rows[0] if c not in _ENDS or any(row[c] != "0" for row in rows)]
    return Table(columns, [[row[column] for column in columns] for row in rows])


def _aim(results: SweepResults) -> str:
    """What was searched for, and what the trials are ranked by if that is another score."""
    if results.objective == results.table["objective"]:
        return f"{results.objective} ({results.direction} it)"
    return f"{results.table['objective']}, ranked by {results.objective} ({results.direction} it)"
