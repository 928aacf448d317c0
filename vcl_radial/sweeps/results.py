"""Read the results of a sweep's folder for a report."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.files.reading import read_json, read_text
from vcl_radial.runs import tracks
from vcl_radial.runs.environment import seconds
from vcl_radial.runs.folder import ENVIRONMENT, RunFolder, read_spec
from vcl_radial.runs.track import AnyTrack, Direction
from vcl_radial.sweeps.folder import SweepFolder, cell, chosen_for, label_of, read_described
from vcl_radial.sweeps.outcome import mean_score, run_fault, score
from vcl_radial.sweeps.space import Parameters, Range, Searchable, encoded, in_order
from vcl_radial.sweeps.specification import MOST_SEEDS
from vcl_radial.sweeps.study import Outcome, Result

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class TrialResult(Result):
    """A trial, as a row of trials.csv.

    Attributes:
        number: number of the trial, from 0.
        parameters: the configuration.
        seconds: mean seconds of training and evaluation of its finished runs; None without any.
        runs: the names of the folders of its runs.
    """

    number: int = 0
    parameters: Parameters = field(default_factory=dict)
    seconds: float | None = None
    runs: Sequence[str] = ()


@dataclass(frozen=True)
class SearchResult:
    """The results of a search with one method on one benchmark.

    Attributes:
        folder: the folder of its run folders.
        start: the initial settings of all runs: a run's spec, without the seed unless settings are
            chosen per seed.
        trials: all trials that have ended, the best one first, those without a score last.
        environments: environments of the finished runs.
        chance: the mean score without training, in per cent; None without a finished run.
    """

    folder: Path
    start: Mapping[str, Any]
    trials: list[TrialResult]
    environments: list[dict[str, Any]] = field(default_factory=list)
    chance: float | None = None

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
        return chosen_for(self.start)

    @property
    def ranked(self) -> list[TrialResult]:
        """The trials with a score, the best one first."""
        return [trial for trial in self.trials if trial.score is not None]

    @property
    def best(self) -> TrialResult | None:
        """The best finished trial, the first one of equal trials; None without one."""
        return next(iter(self.ranked), None)


@dataclass(frozen=True)
class SweepResults:
    """The results of a sweep.

    Attributes:
        name: name of the sweep.
        table: the keys of its TOML.
        keys: the searched keys.
        searched: results per benchmark and method, and per seed if settings are chosen per seed.
        objective: the score to rank trials by: the objective of the search, or another score.
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


def read_results(path: Path, by: str | None = None) -> SweepResults:
    """Read the results in a sweep's folder.

    Args:
        path: the folder.
        by: the score to rank trials by; None for the objective of the sweep.

    Raises:
        UserError: it is no sweep's folder, a file is damaged, no trial has ended yet, there is no
            such score, or it names code (`Untrusted`).
    """
    file = path / "sweep.toml"
    if not file.is_file():
        raise UserError("is not a sweep's folder; give the one that `sweep` named", path)
    try:
        return _results(path, read_described(file), by)
    except (ValueError, LookupError, TypeError, AttributeError):  # a value that no sweep writes
        raise UserError(f"damaged; {_FIX}", file) from None


def _results(path: Path, table: Mapping[str, Any], by: str | None) -> SweepResults:
    """The results of `read_results` from a table of unknown origin."""
    table["seed"], table["fixed"]  # keys that reports need must exist
    objective = by or table["objective"]
    if not 0 <= table["seeds"] <= MOST_SEEDS:
        raise ValueError("too many seeds")
    with outside.named_by(path / "sweep.toml"):
        start_tracks = [tracks.from_tables(start) for start in table["start"]]
    for track, start in zip(start_tracks, table["start"], strict=True):
        start[track.spec.DATA]  # not data of another track
    keys = in_order(TypeAdapter(dict[str, Searchable]).validate_python(table["search"]))
    trials = _trials(path / "trials.csv", keys)
    objectives = start_tracks[0].objectives
    if by is not None and by not in objectives:
        raise UserError(f"no score {by!r}; choose from {', '.join(objectives)}")
    other = by if objective != table["objective"] else None
    sign = -1 if objectives[objective].direction == "maximize" else 1
    searched = []
    for start in table["start"]:
        search = _with_runs(start, trials.get(label_of(start), []), path, other)
        search.trials.sort(key=lambda t: (t.score is None, sign * (t.score or 0.0)))
        searched.append(search)
    return SweepResults(path.resolve().name, table, keys, searched, objective)


def study_of(
    search: SearchResult, keys: Mapping[str, Searchable], direction: Direction
) -> optuna.Study:
    """Make a study of all trials that have ended, for Optuna's plots, named by the method."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler()
    study = optuna.create_study(direction=direction, study_name=search.method, sampler=sampler)
    for trial in sorted(search.trials, key=lambda trial: trial.number):
        study.enqueue_trial(encoded(trial.parameters))
        asked = study.ask()
        for key in trial.parameters:
            keys[key].suggest(asked, key)
        failed = optuna.trial.TrialState.FAIL if trial.score is None else None
        study.tell(asked, trial.score, state=failed)
    return study


def _with_runs(
    start: Mapping[str, Any], trials: Sequence[TrialResult], path: Path, by: str | None
) -> SearchResult:
    """The results of a search, with the cost of its finished runs.

    Args:
        start: the initial settings of the search.
        trials: its trials.
        path: the folder of the sweep.
        by: another score of the runs, which replaces the score of the trials; or None.
    """
    track, sweep = tracks.from_tables(start), SweepFolder(path)
    folder = sweep.runs / start["benchmark"] / start["method"]
    environments: dict[str, dict[str, Any]] = {}
    chances: dict[str, float] = {}
    complete = []
    for trial in trials:
        costs, scores = [], []
        for name in trial.runs:
            run, fault = _run(sweep, track, folder / name)
            if run is None:
                if by is not None and trial.score is not None:
                    print(f"{fault}; trial {trial.number} has no {by}")
                continue
            environments[name] = read_json(run.path / ENVIRONMENT)
            costs.append(seconds(environments[name]))
            if (chance := track.chance(run)) is not None:
                chances[name] = chance
            if by is not None and trial.score is not None:
                scores.append(score(run, by))
        trial = replace(trial, seconds=statistics.fmean(costs) if costs else None)  # noqa: PLW2901
        complete.append(_rescored(trial, scores) if by else trial)
    chance = statistics.fmean(chances.values()) if chances else None
    return SearchResult(folder, start, complete, list(environments.values()), chance)


def _run(sweep: SweepFolder, track: AnyTrack, path: Path) -> tuple[RunFolder[Any] | None, str]:
    """The folder of a finished run; or None, and why it holds none."""
    try:
        folder = sweep.run(track.validated(read_spec(path)))
    except (OSError, ValueError, LookupError, TypeError, UserError):
        return None, f"{path}: not finished"
    fault = run_fault(folder)
    return (folder, "") if fault is None else (None, f"{path}: {fault}")


def _rescored(trial: TrialResult, scores: Sequence[float | None]) -> TrialResult:
    """The trial with another score; None as its score unless the runs of all seeds have one."""
    known = [value for value in scores if value is not None and math.isfinite(value)]
    if len(known) < len(trial.runs):
        return replace(trial, score=None, standard_error=None)
    mean, spread = mean_score(known)
    return replace(trial, score=mean, standard_error=spread)


def _trials(path: Path, keys: Mapping[str, Searchable]) -> dict[str, list[TrialResult]]:
    """The trials of each search by its label, from trials.csv.

    Raises:
        UserError: the file is missing, damaged or empty.
    """
    trials: dict[str, list[TrialResult]] = {}
    try:
        for row in csv.DictReader(io.StringIO(read_text(path))):
            parts = (row["benchmark"], row["method"], row.get("chosen_for"))
            label = "/".join(part for part in parts if part is not None)
            trials.setdefault(label, []).append(_trial(row, keys))
    except FileNotFoundError:
        raise UserError(f"there is none; {_FIX}", path) from None
    except (OSError, ValueError, LookupError, TypeError, StopIteration, csv.Error):
        raise UserError(f"damaged; {_FIX}", path) from None
    if not trials:
        raise UserError(f"has no trial; {_FIX}, if one has ended", path)
    return trials


def _trial(row: Mapping[str, str], keys: Mapping[str, Searchable]) -> TrialResult:
    if None in row or None in row.values():
        raise ValueError("a row is incomplete")
    if row["score"] and not math.isfinite(float(row["score"])):
        raise ValueError("a score is no number")
    return TrialResult(
        outcome=cast(Outcome, row["outcome"]),
        score=float(row["score"]) if row["score"] else None,
        standard_error=float(row["standard_error"]) if row["standard_error"] else None,
        words=row["words"],
        number=int(row["trial"]),
        parameters={key: _value(domain, row[key]) for key, domain in keys.items() if row[key]},
        runs=row["runs"].split(),
    )


def _value(domain: Searchable, text: str) -> Any:
    if isinstance(domain, Range):
        return int(text) if domain.is_whole else float(text)
    return next(choice for choice in domain.choices if cell(choice) == text)
