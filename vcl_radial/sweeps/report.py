"""The report of a sweep: what is best, what it depends on, and what stands behind it."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w
from matplotlib.figure import Figure

from vcl_radial.errors import UserError
from vcl_radial.report.figures.style import save
from vcl_radial.runs import catalogue
from vcl_radial.runs.environment import distinct
from vcl_radial.runs.folder import not_written, write_atomically
from vcl_radial.runs.track import AnyTrack
from vcl_radial.sweeps.draw_cost import cost_against_score
from vcl_radial.sweeps.draw_distribution import Levels, distribution, levels, shares
from vcl_radial.sweeps.draw_parallel import parallel
from vcl_radial.sweeps.folder import cell
from vcl_radial.sweeps.importance import draw_importances, importances
from vcl_radial.sweeps.results import Searched, SweepResults, Tried, read_results, run_of


def write_sweep_report(
    path: Path,
    to: Path,
    nothing: float | None = None,
    good: float | None = None,
    top: int = 1,
    by: str | None = None,
) -> None:
    """Write the report of a sweep, for each of its benchmarks in a folder of its own.

    Args:
        path: the sweep's folder.
        to: where to write.
        nothing: the score in per cent below which nothing was learnt; None for a tenth of the way
            from chance to the best.
        good: the score from which a configuration is good; None for nine tenths of that way.
        top: configurations of each method that are written down as recipes.
        by: the score to rank configurations by; None for the one that was searched for.

    Raises:
        UserError: there is nothing to report or no such score, the levels are the wrong way round,
            or a file cannot be written.
    """
    results = read_results(path, by)
    of_benchmarks: dict[str, list[Searched]] = {}
    for one in results.searched:
        if one.trials:
            of_benchmarks.setdefault(one.benchmark, []).append(one)
    leveled = results.objective == results.track.objective
    found = {  # of all benchmarks before anything is written, for a level may be refused
        benchmark: levels(searched, nothing, good) if leveled else None
        for benchmark, searched in of_benchmarks.items()
    }
    for benchmark, searched in of_benchmarks.items():
        level = found[benchmark]
        place = to / benchmark
        table = importances(searched, results.keys, results.direction)
        write_atomically(place / "trials.csv", _trials(results, searched))
        write_atomically(place / "summary.csv", _summary(results, searched, level))
        write_atomically(place / "importance.csv", table.to_csv(index=False))
        for one in searched:
            for rank, trial in enumerate(one.ranked(results.direction)[:top], start=1):
                text = recipe_text(results, one, trial, rank)
                write_atomically(place / recipe_name(one, rank), text)
        pictures = _pictures(results, searched, level, benchmark)
        if len(table):
            pictures["importance"] = draw_importances(table, f"{benchmark}: what matters")
        write_atomically(
            place / "summary.md", _page(results, searched, level, benchmark, list(pictures))
        )
        print(f"\n{benchmark}\n{_markdown(_rows(results, searched, level))}")
        for stem, picture in pictures.items():
            try:
                paths = save(picture, place / stem)
            except OSError as error:
                raise not_written(place / stem, error) from None
            print(f"  {paths[0]}  (and .svg)")
        print(f"  {place / 'summary.md'}, trials.csv, summary.csv, importance.csv")
        for one in searched:
            if (best := one.best(results.direction)) is not None:
                print(f"  {best_command(results.track, one, best, place)}")


def recipe_name(one: Searched, rank: int) -> str:
    """The file of the configuration of a rank, from 1."""
    return f"best-{one.method}.toml" if rank == 1 else f"best-{one.method}-{rank}.toml"


def recipe_text(results: SweepResults, one: Searched, trial: Tried, rank: int = 1) -> str:
    """A configuration as the TOML of a method."""
    recipe: dict[str, Any] = dict(run_of(one.start, trial.parameters, 0).settings()["recipe"])
    own = _own(results.track, one)
    if own is not None and "eval_samples" not in trial.parameters:
        # How a prediction is made is no part of what was found: as the method has it.
        recipe["eval_samples"] = own["recipe"]["eval_samples"]
    spread = "" if trial.standard_error is None else f" +- {trial.standard_error:.3g}"
    place = "The best" if rank == 1 else f"Number {rank}"
    head = [
        f"# {place} of {len(one.trials)} trials of the sweep {results.name}: trial {trial.number},",
        f"# {results.objective} {trial.score:.4g}{spread} on validation data of {one.benchmark}, "
        f"{_count(int(results.table['seeds']), 'seed')}.",
    ]
    words = f"{one.method} as the sweep {results.name} found it best"
    words += "" if results.objective == results.table["objective"] else f" by {results.objective}"
    words += "" if rank == 1 else f" but {rank - 1}"
    return "\n".join([*head, tomli_w.dumps({"description": words, **recipe})])


def best_command(track: AnyTrack, one: Searched, best: Tried, place: Path) -> str:
    """The command that runs the best configuration on test data.

    Keys that the benchmark's own TOML sets, and those of the data, are not the method's to set.
    """
    run = run_of(one.start, best.parameters, 0).settings()
    settings: dict[str, Any] = {}
    own = _own(track, one)
    try:
        for key, value in catalogue.recipe_of(one.benchmark).items():
            if run["recipe"].get(key) != value:
                settings[key] = run["recipe"].get(key)
        for key, value in run[track.spec.DATA].items():
            # A checksum is filled in by the command itself.
            if own is not None and own[track.spec.DATA].get(key) != value and key != "checksum":
                settings[f"{track.spec.DATA}.{key}"] = value
    except UserError:
        pass  # a benchmark of the user's own that lies elsewhere by now
    words = ["vcl-radial", "run", one.benchmark, "--method"]
    words += [str(place / f"best-{one.method}.toml")]
    if settings:
        words += ["--set", *(f"{key}={json.dumps(value)}" for key, value in settings.items())]
    return shlex.join([*words, "--seeds", "5"])


def _own(track: AnyTrack, one: Searched) -> dict[str, Any] | None:
    """What the method's run would be without the sweep; None if the method is not found."""
    try:
        own: dict[str, Any] = catalogue.plan(one.benchmark, [one.method], [0])[0].settings()
    except UserError:
        return None
    return own


def _pictures(
    results: SweepResults, searched: Sequence[Searched], level: Levels | None, benchmark: str
) -> dict[str, Figure]:
    maximize = results.direction == "maximize"
    pictures: dict[str, Figure] = {}
    if any(trial.score is not None for one in searched for trial in one.trials):
        pictures["distribution"] = distribution(
            searched, results.words, benchmark, level, higher_is_better=maximize
        )
        pictures["cost"] = cost_against_score(searched, results.words, results.direction, benchmark)
    for one in searched:
        stem = f"parallel-{re.sub(r'[^a-zA-Z0-9_.=-]+', '_', one.method)}"
        pictures[stem] = parallel(one, results.keys, results.words, results.direction)
    return pictures


def _trials(results: SweepResults, searched: Sequence[Searched]) -> str:
    """All trials with their cost, the best first."""
    sign = -1.0 if results.direction == "maximize" else 1.0
    columns = ["method", "trial", "outcome", "score", "standard_error", "seconds", "words"]
    rows = []
    for one in searched:
        inf = float("inf")
        order = sorted(one.trials, key=lambda t: inf if t.score is None else sign * t.score)
        for trial in order:
            values = vars(trial) | {"trial": trial.number, "method": one.method}
            parameters = [trial.parameters.get(key) for key in results.keys]
            rows.append([cell(value) for value in (*(values[c] for c in columns), *parameters)])
    return _csv([[*columns, *results.keys], *rows])


def _rows(
    results: SweepResults, searched: Sequence[Searched], level: Levels | None
) -> list[dict[str, str]]:
    """What came of each method, as it is printed."""
    rows = []
    for one in searched:
        outcomes = [trial.outcome for trial in one.trials]
        best = one.best(results.direction)
        scores = [trial.score for trial in one.trials if trial.score is not None]
        row = {"method": one.method, "trials": str(len(outcomes))}
        row |= {how: str(outcomes.count(how)) for how in ("pruned", "diverged", "failed")}
        row["best"] = row["median"] = ""
        if best is not None and best.score is not None:
            spread = "" if best.standard_error is None else f" ± {best.standard_error:.2g}"
            row["best"] = f"{best.score:.4g}{spread}"
            row["median"] = f"{statistics.median(scores):.4g}"
        if level is not None:
            share = shares(one, level)
            row["learnt nothing (%)"] = f"{share.nothing:.0f}"
            row["good (%)"] = f"{share.good:.0f}"
        row["hours"] = f"{_hours([one]):.2f}"
        rows.append(row)
    return rows


def _summary(results: SweepResults, searched: Sequence[Searched], level: Levels | None) -> str:
    rows = _rows(results, searched, level)
    return _csv([list(rows[0]), *(list(row.values()) for row in rows)])


def _page(
    results: SweepResults,
    searched: Sequence[Searched],
    level: Levels | None,
    benchmark: str,
    pictures: Sequence[str],
) -> str:
    """The table, the best settings and what stands behind them."""
    rows = _rows(results, searched, level)
    seeds = int(results.table["seeds"])
    environments = [e for one in searched for e in one.environments]
    commands = sorted({str(e.get("command") or "unknown") for e in environments})
    lines = [
        f"# {results.name}: {benchmark}",
        "",
        *([str(results.table["description"]), ""] if results.table.get("description") else []),
        _markdown(rows),
        f"{results.table['kind']} search for {_aim(results)}, validation data"
        f"{', others for every seed' if results.table.get('resplit') else ''}, "
        f"mean ± standard error over {_count(seeds, 'seed')}"
        + (f"; {level.words}." if level else "."),
        "",
    ]
    for one in searched:
        best = one.best(results.direction)
        if best is not None:
            settings = ", ".join(f"`{k} = {cell(v)}`" for k, v in best.parameters.items())
            command = best_command(results.track, one, best, Path())
            lines += [f"Best of {one.method}, trial {best.number}: {settings}.", ""]
            lines += ["```sh", command, "```", ""]
    lines += [f"![{stem}]({stem}.png)\n" for stem in pictures]
    # Licences, and what is synthetic.
    notices = dict.fromkeys(words for e in environments for words in e.get("notices", []))
    lines += [f"- {words}" for words in notices]
    lines += [
        f"- command: `{'`, `'.join(commands)}`",
        f"- seeds: {', '.join(map(str, range(seeds)))}; of the search: {results.table['seed']}",
        f"- commit: {distinct(environments, 'commit')}",
        f"- device: {distinct(environments, 'device')} ({distinct(environments, 'processor')}), "
        f"{distinct(environments, 'threads')} thread(s) a run",
        f"- {len(environments)} finished runs, {_hours(searched):.2f} hours of training and "
        "evaluation in all",
        "",
    ]
    return "\n".join(lines)


def _aim(results: SweepResults) -> str:
    """What was searched for, and what the trials are ranked by if that is another score."""
    if results.objective == results.table["objective"]:
        return f"{results.objective} ({results.direction} it)"
    return f"{results.table['objective']}, ranked by {results.objective} ({results.direction} it)"


def _hours(searched: Sequence[Searched]) -> float:
    return float(sum(e["seconds"] for one in searched for e in one.environments)) / 3600


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """A table; columns that hold nothing but zeros are left out."""
    columns = [c for c in rows[0] if c not in _ZERO or any(row[c] != "0" for row in rows)]
    lines = [f"| {' | '.join(columns)} |"]
    lines.append("| " + " | ".join("---" if c == "method" else "---:" for c in columns) + " |")
    lines += ["| " + " | ".join(row[c] for c in columns) + " |" for row in rows]
    return "".join(f"{line}\n" for line in lines)


_ZERO = ("pruned", "diverged", "failed")


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
