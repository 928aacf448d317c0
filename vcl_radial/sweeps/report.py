"""Write the report of a sweep: its trials, its best settings and their runs."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from vcl_radial.errors import UserError
from vcl_radial.reporting import manifest
from vcl_radial.reporting.blocks import Block, Figure, Report, Section, Table, Text
from vcl_radial.reporting.files import write_files, write_page
from vcl_radial.reporting.gather import read_runs
from vcl_radial.reporting.html import MARK
from vcl_radial.reporting.labels import file_name
from vcl_radial.reporting.provenance import behind
from vcl_radial.runs.environment import seconds
from vcl_radial.runs.folder import check_page
from vcl_radial.runs.track import SCORED_ON, FinishedRun
from vcl_radial.sweeps import figures
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.levels import Levels, levels, shares
from vcl_radial.sweeps.progress import number_of
from vcl_radial.sweeps.recipes import chosen_text, command_for, recipe_name, recipe_text
from vcl_radial.sweeps.results import SearchResult, SweepResults, read_results, study_of
from vcl_radial.sweeps.space import Parameters

if TYPE_CHECKING:
    import optuna

FEWEST_SCORES = 4
"""Smallest number of different scores of a method for which the importance of keys is drawn."""


def write_sweep_report(
    path: Path,
    to: Path,
    top: int = 1,
    by: str | None = None,
    command: str | None = None,
    data_dir: Path | None = None,
) -> None:
    """Write the report of a sweep: a folder per benchmark, and one page.

    Args:
        path: the sweep's folder.
        to: the folder of the report.
        top: number of configurations per method to write as recipes.
        by: the score to rank configurations by; None for the objective of the sweep.
        command: the command line that makes the report.
        data_dir: the folder of the data, for tracks that show examples.

    Raises:
        UserError: there is nothing to report or no such score, or a file cannot be written.
    """
    page = to / "index.html"
    check_page(page, [manifest.OF_ALL], MARK)
    results = read_results(path, by)
    drawn = []
    searched = [search for search in results.searched if search.trials]
    for benchmark, group in groupby(searched, key=lambda search: search.benchmark):
        folder = to / benchmark
        report = report_of(results, list(group), folder, top, data_dir)
        drawn.append(write_files(report, folder, benchmark=benchmark, runs=path))
        for block in report.sections[0].blocks:
            if isinstance(block, Text) and block.style == "code":
                print(f"  {block.text}")
    facts = [("command", [command])] if command is not None else []
    facts += [("folder", [str(path)])]
    write_page(page, drawn, title=results.name, facts=facts, passed_over=[])


def report_of(
    results: SweepResults,
    searched: Sequence[SearchResult],
    folder: Path,
    top: int = 1,
    data_dir: Path | None = None,
) -> Report:
    """The report of the searched methods on one benchmark: the trials, then the best runs.

    Its recipes have the `top` configurations of each method or, where settings are chosen per seed,
    the best of every seed under `[chosen.KEY]`.
    """
    if results.table.get("per_seed", False):
        sections, recipes = _per_seed(results, searched, folder)
    else:
        sections = _sections(results, searched, folder)
        sections += _best_runs(results, searched, data_dir)
        recipes = {
            recipe_name(search.method, rank): recipe_text(results, search, trial, rank)
            for search in searched
            for rank, trial in enumerate(search.ranked[:top], start=1)
        }
    environments = [e for search in searched for e in search.environments]
    facts = behind(
        environments,
        seeds=range(int(results.table["seeds"])),
        evaluated_on=[SCORED_ON],
        more=[
            ("seed of the search", [str(results.table["seed"])]),
            ("runs", [f"{len(environments)} finished"]),
        ],
    )
    notices = dict.fromkeys(notice for e in environments for notice in e.get("notices", []))
    title = f"{results.name}: {searched[0].benchmark}"
    return Report(title, sections, facts, list(notices), recipes)


def _sections(
    results: SweepResults, searched: Sequence[SearchResult], folder: Path
) -> list[Section]:
    """The sections of a search with one best configuration per method."""
    resplit = ", others for every seed" if results.table.get("resplit") else ""
    note = (
        f"{results.table['kind']} search for {_aim(results)}, validation data{resplit}, mean ± "
        f"standard error over {number_of('seed', int(results.table['seeds']))}"
    )
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
    studies = []
    for search in searched:
        if best := search.best:
            path = folder / recipe_name(search.method)
            command = command_for(results, search, path, 5, best.parameters)
            blocks += [
                Text(f"Best of {search.method}, trial {best.number}: {_words(best.parameters)}."),
                Text(command, style="code"),
            ]
            studies.append(study_of(search, results.keys, results.direction))
    if studies:
        blocks += _pictures(results, searched, studies, level)
    files = {"trials.csv": _trials(results, searched)}
    return [Section("", blocks, files), *(_keys(study, results.label) for study in studies)]


def _per_seed(
    results: SweepResults, searched: Sequence[SearchResult], folder: Path
) -> tuple[list[Section], dict[str, str]]:
    """The sections of a search that chose settings per seed, and the recipes of the methods."""
    rows: list[list[str]] = []
    counts: list[list[str]] = []
    commands: list[Block] = []
    recipes: dict[str, str] = {}
    for method in dict.fromkeys(search.method for search in searched):
        searches = [search for search in searched if search.method == method]
        bests = [(search, search.best) for search in searches]
        chosen = {str(search.chosen_for): best.parameters for search, best in bests if best}
        trials = [trial for search in searches for trial in search.trials]
        without = sum(trial.score is None for trial in trials)
        rows.append([method, str(len(chosen)), str(len(trials)), str(without)])
        name = f"{method}.toml"
        recipes[name] = chosen_text(results, searches[0], chosen)
        seeds = 1 + max(int(search.start["seed"]) for search in searches)
        command = command_for(results, searches[0], folder / name, seeds, {})
        commands.append(Text(command, style="code"))
        settings = Counter(map(_words, chosen.values()))
        counts += [[method, text, str(n)] for text, n in settings.most_common()]
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
    return [Section("", blocks, {"trials.csv": _trials(results, searched)})], recipes


def _best_runs(
    results: SweepResults, searched: Sequence[SearchResult], data_dir: Path | None
) -> list[Section]:
    """The report of the runs of each method's best configuration, as of any other runs."""
    runs: list[FinishedRun] = []
    for search in searched:
        if best := search.best:
            try:
                finished = read_runs([search.folder / name for name in best.runs])
            except UserError as error:  # deleted meanwhile
                print(f"passed over: {error}")
                continue
            runs += [
                replace(run, benchmark=search.benchmark, method=search.method) for run in finished
            ]
    if not runs:
        return []
    note = (
        "All below is of the best configurations, on the validation data by which the sweep has "
        "chosen them: scores on test data will be lower."
    )
    return [Section("Best configurations", [Text(note)]), *results.track.sections(runs, data_dir)]


def _pictures(
    results: SweepResults,
    searched: Sequence[SearchResult],
    studies: Sequence[optuna.Study],
    level: Levels | None,
) -> list[Block]:
    """The pictures of all methods together."""
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


def _keys(study: optuna.Study, label: str) -> Section:
    """The section of a method with its keys."""
    method = study.study_name
    plots = [
        ("slice", figures.slices, f"The score of {method} over each key"),
        ("parallel", figures.parallel, f"All configurations of {method}"),
        ("importance", figures.importance, f"How much each key of {method} matters for the score"),
    ]
    if len({trial.value for trial in study.trials if trial.value is not None}) < FEWEST_SCORES:
        del plots[-1]
    blocks = [
        Figure(f"{name}-{file_name(method)}", partial(draw, study, label), alt)
        for name, draw, alt in plots
    ]
    return Section(f"Keys of {method}", blocks)


def _trials(results: SweepResults, searched: Sequence[SearchResult]) -> str:
    """The CSV of all trials with their cost, the best first."""
    rows = [
        {"method": search.method, "chosen_for": search.chosen_for, "trial": trial.number}
        | vars(trial)
        | trial.parameters
        for search in searched
        for trial in search.trials
    ]
    columns = ["method", "chosen_for", "trial", "outcome", "score", "standard_error", "seconds"]
    table = pd.DataFrame(rows, columns=[*columns, "words", *results.keys], dtype=object)
    if searched[0].chosen_for is None:
        table = table.drop(columns="chosen_for")
    return table.to_csv(index=False)


_ENDS = ("pruned", "diverged", "failed")


def _row(results: SweepResults, search: SearchResult, level: Levels | None) -> dict[str, str]:
    """The formatted results of a method."""
    outcomes: list[str] = [trial.outcome for trial in search.trials]
    row = {"method": search.method, "trials": str(len(outcomes))}
    row |= {how: str(outcomes.count(how)) for how in _ENDS}
    row |= {"best": "", "median": ""}
    if ranked := search.ranked:
        median = statistics.median(trial.score or 0.0 for trial in ranked)
        row |= {"best": ranked[0].text, "median": f"{median:.4g}"}
    if level is not None:
        nothing, good = shares(search, level)
        row |= {"learnt nothing (%)": f"{nothing:.0f}", "good (%)": f"{good:.0f}"}
    row["hours"] = f"{sum(map(seconds, search.environments)) / 3600:.2f}"
    return row


def _aim(results: SweepResults) -> str:
    """The objective of the search, and the score for ranking if it differs from the objective."""
    if results.objective == results.table["objective"]:
        return f"{results.objective} ({results.direction} it)"
    return f"{results.table['objective']}, ranked by {results.objective} ({results.direction} it)"


def _words(parameters: Parameters) -> str:
    """A configuration in words."""
    return ", ".join(f"{key} = {cell(value)}" for key, value in parameters.items())
