"""Read the results of a sweep's folder for a report."""

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
from vcl_radial.sweeps.plans import shared
from vcl_radial.sweeps.space import Parameters, Range, Searchable, in_order


@dataclass(frozen=True)
class TrialResult:
    """A trial, as a row of trials.csv.

    Attributes:
        number: number of the trial, from 0.
        outcome: outcome of the trial.
        score: mean score over the seeds; None unless the trial finished.
        standard_error: standard error of the mean.
        words: why the trial did not finish (the column of this name).
        parameters: the configuration.
        seconds: mean seconds of training and evaluation of its finished runs; None without any.
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
    """The results of a search with one method on one benchmark.

    Attributes:
        start: the initial settings of all runs: a run's spec without the seed.
        trials: all trials that have ended.
        environments: environments of the finished runs, each with its `seconds`.
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
        """The key for which settings are chosen; None for all seeds together."""
        return (
            tracks.from_tables(self.start).selection_unit(self.start)
            if "seed" in self.start
            else None
        )

    def ranked(self, direction: Direction) -> list[TrialResult]:
        """The finished trials, the best one first; equal trials in order."""
        sign = -1 if direction == "maximize" else 1
        finished = [trial for trial in self.trials if trial.score is not None]
        return sorted(finished, key=lambda trial: sign * (trial.score or 0.0))

    def best(self, direction: Direction) -> TrialResult | None:
        """The best finished trial; None without one."""
        return next(iter(self.ranked(direction)), None)


@dataclass(frozen=True)
class SweepResults:
    """The results of a sweep.

    Attributes:
        name: name of the sweep.
        table: the keys of its TOML.
        keys: the searched keys.
        searched: results per benchmark and method, and per seed if settings are chosen per seed.
        objective: the score to rank trials by: that of the search, or another one.
    """

    name: str
    table: Mapping[str, Any]
    keys: Mapping[str, Searchable]
    searched: list[SearchResult]
    objective: str

    @property
    def track(self) -> AnyTrack:
        """The track of the sweep."""
        return tracks.from_tables(self.table["start"][0])

    @property
    def label(self) -> str:
        """The label of the objective on an axis."""
        return self.track.objectives[self.objective].label

    @property
    def direction(self) -> Direction:
        """The better direction of the objective."""
        return self.track.objectives[self.objective].direction


_FIX = "the command of the sweep writes it again"
_MOST_SEEDS = 100_000


def read_results(path: Path, by: str | None = None) -> SweepResults:
    """Read the results in a sweep's folder.

    Args:
        path: the folder.
        by: the score to rank trials by; None for the objective of the sweep.

    Raises:
        UserError: it is no sweep's folder, a file is damaged, no trial has ended yet, there is no
            such score, or it names code (`Untrusted`).
    """
    if not (path / "sweep.toml").is_file():
        raise UserError(f"{path}: is not a sweep's folder; give the one that `sweep` named")
    try:
        table = read_described(path / "sweep.toml")
        if table is not None:
            return _results(path, table, by)
    except (ValueError, LookupError, TypeError, AttributeError):  # a value that no sweep writes
        pass
    raise UserError(f"{path / 'sweep.toml'}: damaged; {_FIX}")


def _results(path: Path, table: Mapping[str, Any], by: str | None) -> SweepResults:
    """The results of `read_results` from a table of unknown origin."""
    table["seed"], table["fixed"], table["start"][0]  # keys that reports need must exist
    if not 0 <= table.get("seeds", 0) <= _MOST_SEEDS:
        raise ValueError("too many seeds")
    with outside.named_by(path / "sweep.toml"):
        start_tracks = [tracks.from_tables(start) for start in table["start"]]
    pairs = zip(start_tracks, table["start"], strict=True)
    if any(track.spec.DATA not in start for track, start in pairs):
        raise ValueError("a start has data of another track")
    keys = in_order(TypeAdapter(dict[str, Searchable]).validate_python(table["search"]))
    folder = SweepFolder(path)
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path / "trials.csv"))))
        columns = columns_of(per_seed=table.get("per_seed", False))
        trials = [(_label(row), _trial(row, columns, keys)) for row in rows]
    except FileNotFoundError:
        raise UserError(f"{path / 'trials.csv'}: there is none; {_FIX}") from None
    except (OSError, ValueError, LookupError, TypeError, StopIteration, csv.Error):
        raise UserError(f"{path / 'trials.csv'}: damaged; {_FIX}") from None
    if not trials:
        raise UserError(f"{path / 'trials.csv'}: has no trial; {_FIX}, if one has ended")
    objectives = tracks.from_tables(table["start"][0]).objectives
    if by is not None and by not in objectives:
        raise UserError(f"no score {by!r}; choose from {', '.join(objectives)}")
    other = by if by != table["objective"] else None
    searched = []
    done = _done(folder, tracks.from_tables(table["start"][0]))
    for start in table["start"]:
        own_trials = [trial for label, trial in trials if label == label_of(start)]
        seeds = [start["seed"]] if "seed" in start else range(table["seeds"])
        resplit = table.get("resplit", False)
        shares = table.get("shares", {})
        searched.append(_with_runs(start, own_trials, folder, done, seeds, other, resplit, shares))
    return SweepResults(path.resolve().name, table, keys, searched, by or str(table["objective"]))


def run_of(
    start: Mapping[str, Any], parameters: Parameters, seed: int, resplit: bool = False
) -> RunSpec:
    """The run of a configuration, from the initial settings that a sweep has written."""
    track = tracks.from_tables(start)
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
    """The runs in a sweep's folder, by their settings without checksums of code and data.

    A trial may use a user's code or data, whose checksum only its run knows: a report may be
    written where these files are missing.
    """
    done = {}
    for path in folder.runs.glob("**/seed-*"):
        with suppress(OSError, ValueError, LookupError, TypeError, UserError):  # a damaged run
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
    track = tracks.from_tables(start)
    environments: dict[Path, dict[str, Any]] = {}
    chances: dict[Path, float] = {}
    complete = []
    for trial in trials:
        costs, scores = [], []
        for seed in seeds:
            spec = run_of(start, trial.parameters, seed, resplit)
            if shares:
                shorter = shared(spec.settings()["recipe"], shares)
                spec = run_of(start, {**trial.parameters, **shorter}, seed, resplit)
            run = folder.run(done.get(_without_checksums(spec, track), spec))
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
    """The trial with another score; None as its score unless the runs of all seeds have one."""
    known = [value for value in scores if value is not None and math.isfinite(value)]
    if len(known) < seeds:
        return replace(trial, score=None, standard_error=None)
    mean, spread = mean_and_standard_error(known)
    return replace(trial, score=mean, standard_error=None if math.isnan(spread) else spread)


def _label(row: Mapping[str, str]) -> str:
    parts = (row["benchmark"], row["method"], row.get("chosen_for"))
    return "/".join(part for part in parts if part is not None)


def _trial(
    row: Mapping[str, str], columns: Sequence[str], keys: Mapping[str, Searchable]
) -> TrialResult:
    if None in row or any(row[column] is None for column in (*columns, *keys)):
        raise ValueError("a row is incomplete")
    if row["score"] and not math.isfinite(float(row["score"])):
        raise ValueError("a score is no number")
    return TrialResult(
        number=int(row["trial"]),
        outcome=row["outcome"],
        score=float(row["score"]) if row["score"] else None,
        standard_error=float(row["standard_error"]) if row["standard_error"] else None,
        words=row["words"],
        parameters={key: _value(domain, row[key]) for key, domain in keys.items() if row[key]},
        seconds=None,
    )


def _value(domain: Searchable, text: str) -> Any:
    if isinstance(domain, Range):
        whole = isinstance(domain.low, int) and isinstance(domain.high, int)
        return int(text) if whole else float(text)
    return next(choice for choice in domain.choices if cell(choice) == text)
