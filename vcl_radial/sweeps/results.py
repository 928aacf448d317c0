"""What a sweep's folder holds, read for a report."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.files.reading import read_json, read_text
from vcl_radial.metrics import mean_and_standard_error
from vcl_radial.runs import tracks
from vcl_radial.runs.environment import seconds
from vcl_radial.runs.folder import read_spec
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import SCORED_ON, AnyTrack, Direction
from vcl_radial.sweeps.folder import SweepFolder, cell, columns_of, label_of, read_described
from vcl_radial.sweeps.outcome import run_fault, score
from vcl_radial.sweeps.space import Parameters, Range, Searchable, in_order
from vcl_radial.sweeps.specification import shared


@dataclass(frozen=True)
class TrialResult:
    """A trial as the table has it.

    Attributes:
        number: of the trial, from 0.
        outcome: how it ended.
        score: the mean over the seeds; None unless it finished.
        standard_error: of that mean.
        words: why it did not finish.
        parameters: the configuration.
        seconds: of training and evaluation, the mean of its finished runs; None without one.
    """

    number: int
    outcome: str
    score: float | None
    standard_error: float | None
    words: str
    parameters: Parameters
    seconds: float | None


@dataclass(frozen=True)
class SearchResult:
    """What came of the search on one benchmark with one method.

    Attributes:
        start: the settings that all runs start from, as in a run's spec without the seed.
        trials: all that have ended.
        environments: what stands behind the finished runs, with the `seconds` of each.
        chance: the mean score without training, in per cent; None without a finished run.
    """

    start: Mapping[str, Any]
    trials: list[TrialResult]
    environments: list[dict[str, Any]]
    chance: float | None

    @property
    def benchmark(self) -> str:
        """The name of the benchmark."""
        return str(self.start["benchmark"])

    @property
    def method(self) -> str:
        """The name of the method."""
        return str(self.start["method"])

    @property
    def chosen_for(self) -> str | None:
        """The key that settings are chosen for; None for all seeds."""
        return tracks.of(self.start).selection_unit(self.start) if "seed" in self.start else None

    def ranked(self, direction: Direction) -> list[TrialResult]:
        """The finished trials, the best one first; of equals the earlier."""
        sign = -1 if direction == "maximize" else 1
        finished = [trial for trial in self.trials if trial.score is not None]
        return sorted(finished, key=lambda trial: sign * (trial.score or 0.0))

    def best(self, direction: Direction) -> TrialResult | None:
        """The first of them, if there is one."""
        return next(iter(self.ranked(direction)), None)


@dataclass(frozen=True)
class SweepResults:
    """A sweep's results.

    Attributes:
        name: of the sweep.
        table: its keys, as its TOML has them.
        keys: what was searched.
        searched: one for each benchmark with each method, and each seed where these are chosen for.
        objective: the score that trials are ranked by; that of the search, or another one.
    """

    name: str
    table: Mapping[str, Any]
    keys: Mapping[str, Searchable]
    searched: list[SearchResult]
    objective: str

    @property
    def track(self) -> AnyTrack:
        """What was searched on."""
        return tracks.of(self.table["start"][0])

    @property
    def words(self) -> str:
        """What it is called on an axis."""
        return self.track.objectives[self.objective].words

    @property
    def direction(self) -> Direction:
        """Which way it is better."""
        return self.track.objectives[self.objective].direction


_FIX = "the sweep's own command writes it anew"
_MOST_SEEDS = 100_000


def read_results(path: Path, by: str | None = None) -> SweepResults:
    """Read what a sweep's folder holds.

    Args:
        path: the folder.
        by: the score to rank trials by, of their runs; None for the one that was searched for.

    Raises:
        UserError: it is not one, a file in it is damaged, no trial has ended yet, there is no such
            score, or it names code (`Untrusted`).
    """
    if not (path / "sweep.toml").is_file():
        raise UserError(f"{path}: is not a sweep's folder; give the one that `sweep` named")
    try:
        table = read_described(path / "sweep.toml")
        if table is not None:
            return _results(path, table, by)
    except (ValueError, LookupError, TypeError, AttributeError):  # values that no sweep has
        pass
    raise UserError(f"{path / 'sweep.toml'}: damaged; {_FIX}")


def _results(path: Path, table: Mapping[str, Any], by: str | None) -> SweepResults:
    """As `read_results`, of a table that any hand may have written."""
    table["seed"], table["fixed"], table["start"][0]  # what a report reads beside what is read here
    if not 0 <= table.get("seeds", 0) <= _MOST_SEEDS:
        raise ValueError("too many seeds")
    with outside.named_by(path / "sweep.toml"):
        of_starts = [tracks.of(start) for start in table["start"]]
    pairs = zip(of_starts, table["start"], strict=True)
    if any(track.spec.DATA not in start for track, start in pairs):
        raise ValueError("a start has data of another track")
    keys = in_order(TypeAdapter(dict[str, Searchable]).validate_python(table["search"]))
    folder = SweepFolder(path)
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path / "trials.csv"))))
        columns = columns_of(per_seed=table.get("per_seed", False))
        trials = [(_label(row), _tried(row, columns, keys)) for row in rows]
    except FileNotFoundError:
        raise UserError(f"{path / 'trials.csv'}: there is none; {_FIX}") from None
    except (OSError, ValueError, LookupError, TypeError, StopIteration, csv.Error):
        raise UserError(f"{path / 'trials.csv'}: damaged; {_FIX}") from None
    if not trials:
        raise UserError(f"{path / 'trials.csv'}: has no trial; {_FIX}, if one has ended")
    objectives = tracks.of(table["start"][0]).objectives
    if by is not None and by not in objectives:
        raise UserError(f"no score {by!r}; choose from {', '.join(objectives)}")
    other = by if by != table["objective"] else None
    found = []
    done = _done(folder, tracks.of(table["start"][0]))
    for start in table["start"]:
        rows_of = [trial for label, trial in trials if label == label_of(start)]
        seeds = [start["seed"]] if "seed" in start else range(table["seeds"])
        resplit = table.get("resplit", False)
        shares = table.get("shares", {})
        found.append(_with_runs(start, rows_of, folder, done, seeds, other, resplit, shares))
    return SweepResults(path.resolve().name, table, keys, found, by or str(table["objective"]))


def run_of(
    start: Mapping[str, Any], parameters: Parameters, seed: int, resplit: bool = False
) -> RunSpec:
    """The run of a configuration, from the settings that a sweep wrote down."""
    track = tracks.of(start)
    if resplit:
        parameters = {**parameters, **track.split_of(seed)}
    data, recipe = dict(start[track.spec.DATA]), dict(start["recipe"])
    options = dict(recipe.get("options", {}))
    for key, value in parameters.items():
        table, dot, inner = key.partition(".")
        if not dot:
            recipe[key] = value
        else:
            {track.spec.DATA: data, "options": options}[table][inner] = value
    recipe |= {"options": options} if options else {}
    run: RunSpec = track.validated(
        {**start, "seed": seed, "evaluate_on": SCORED_ON, track.spec.DATA: data, "recipe": recipe}
    )
    return run


def _done(folder: SweepFolder, track: AnyTrack) -> dict[str, RunSpec]:
    """The runs in a sweep's folder by their settings, but for checksums of code and data.

    Those of the user's own, which a trial may have instead of the ones that it started from, are
    known to the run alone: a report may be made where they are not at hand.
    """
    done = {}
    for path in folder.runs.glob("**/seed-*"):
        with suppress(OSError, ValueError, LookupError, TypeError, UserError):  # damaged
            run: RunSpec = track.validated(read_spec(path))
            done[_without_checksums(run, track)] = run
    return done


def _without_checksums(run: RunSpec, track: AnyTrack) -> str:
    settings = run.settings()
    settings.pop("code", None)
    settings[track.spec.DATA].pop("checksum", None)
    return json.dumps(settings, sort_keys=True)


def _with_runs(
    start: Mapping[str, Any],
    trials: list[TrialResult],
    folder: SweepFolder,
    done: Mapping[str, RunSpec],
    seeds: Sequence[int],
    by: str | None,
    resplit: bool,
    shares: Mapping[str, float],
) -> SearchResult:
    track = tracks.of(start)
    environments: dict[Path, dict[str, Any]] = {}
    chances: dict[Path, float] = {}
    complete = []
    for trial in trials:
        costs, scores = [], []
        for seed in seeds:
            wanted = run_of(start, trial.parameters, seed, resplit)
            if shares:
                shorter = shared(wanted.settings()["recipe"], shares)
                wanted = run_of(start, {**trial.parameters, **shorter}, seed, resplit)
            run = folder.run(done.get(_without_checksums(wanted, track), wanted))
            if (fault := run_fault(run)) is not None:
                if by is not None and trial.score is not None:
                    print(f"{run.path}: {fault}; trial {trial.number} has no {by}")
                continue
            environment = read_json(run.path / "environment.json")
            costs.append(seconds(environment))
            environments[run.path] = environment | {"seconds": costs[-1]}
            chance: float | None = track.chance(run)
            if chance is not None:
                chances[run.path] = chance
            if by is not None and trial.score is not None:
                scores.append(score(run, by))
        cost = statistics.fmean(costs) if costs else None
        complete.append(
            replace(_rescored(trial, scores, len(seeds)) if by else trial, seconds=cost)
        )
    mean, _ = mean_and_standard_error(chances.values())
    return SearchResult(start, complete, list(environments.values()), mean if chances else None)


def _rescored(trial: TrialResult, scores: Sequence[float | None], seeds: int) -> TrialResult:
    """The trial by another score; without one where not every seed's run is there and has it."""
    known = [value for value in scores if value is not None and math.isfinite(value)]
    if len(known) < seeds:
        return replace(trial, score=None, standard_error=None)
    mean, spread = mean_and_standard_error(known)
    return replace(trial, score=mean, standard_error=None if math.isnan(spread) else spread)


def _label(row: Mapping[str, str]) -> str:
    parts = (row["benchmark"], row["method"], row.get("chosen_for"))
    return "/".join(part for part in parts if part is not None)


def _tried(
    row: Mapping[str, str], columns: Sequence[str], keys: Mapping[str, Searchable]
) -> TrialResult:
    if None in row or any(row[column] is None for column in (*columns, *keys)):
        raise ValueError("a row is torn")
    if row["score"] and not math.isfinite(float(row["score"])):
        raise ValueError("a score is no number")
    return TrialResult(
        number=int(row["trial"]),
        outcome=row["outcome"],
        score=float(row["score"]) if row["score"] else None,
        standard_error=float(row["standard_error"]) if row["standard_error"] else None,
        words=row["words"],
        parameters={key: _value(what, row[key]) for key, what in keys.items() if row[key]},
        seconds=None,
    )


def _value(what: Searchable, text: str) -> Any:
    if isinstance(what, Range):
        whole = isinstance(what.low, int) and isinstance(what.high, int)
        return int(text) if whole else float(text)
    return next(choice for choice in what.choices if cell(choice) == text)
