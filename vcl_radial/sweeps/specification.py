"""What a sweep is: a TOML, every key validated before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from vcl_radial.config.ranges import Count, Positive
from vcl_radial.errors import UserError, nearest
from vcl_radial.runs import catalogue, planning, tracks
from vcl_radial.runs.settings import Settings, validated
from vcl_radial.runs.spec import DEFAULT_TRACK, RunSpec
from vcl_radial.runs.track import SCORED_ON, AnyTrack, Direction
from vcl_radial.sweeps.space import Cases, Choices, Parameters, Range, Searchable, Space, in_order

_NEVER_TEST = (
    "a sweep chooses by its scores, so it is scored on validation data only; leave the key out"
)
Share = Annotated[float, Field(gt=0, lt=1)]


class Pruning(Settings):
    """When a trial is given up.

    After every task (or epoch): if its first seed's average accuracy (or best validation AUC) so
    far is below this quantile of those that earlier trials had there, of which there are at least
    so many.
    """

    quantile: Annotated[float, Field(gt=0, lt=1)] = 0.5
    after: Count = 8


class Sweep(Settings):
    """The keys of a sweep's TOML.

    Attributes:
        resplit: whether every seed holds out other validation data, so that what is chosen suits
            more than one set of them.
        per_seed: whether settings are chosen for every seed, and every data set of a benchmark of
            several, by its own scores alone: what is validation data of one may be test data of
            another.
        shares: a configuration is tried with this share of a key's value, such as of `steps`; the
            recipes of the report have all of it.
    """

    description: str = ""
    kind: Literal["grid", "random", "tpe"]
    benchmark: Annotated[list[str], Field(min_length=1)]
    method: Annotated[list[str], Field(min_length=1)]
    objective: str
    seeds: Annotated[int, Field(ge=1, le=1000)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    resplit: bool = False
    per_seed: bool = False
    trials: Count | None = None
    hours: Positive | None = None
    at_once: Count = 4
    pruning: Pruning | None = None
    shares: dict[str, Share] = Field(default={})
    fixed: dict[str, Any] = Field(default={})
    search: Annotated[dict[str, Searchable], Field(min_length=1)]

    @property
    def ordered(self) -> bool:
        """Whether a trial depends on what came of others."""
        return self.kind == "tpe" or self.pruning is not None


@dataclass(frozen=True)
class Plan:
    """A validated search on one benchmark with one method: what is needed to make its runs.

    Attributes:
        chosen_for: the one key (`Track.selection_unit`) that is searched for; None for all seeds.
    """

    name: str
    sweep: Sweep
    track: AnyTrack
    benchmark: str
    method: str
    base: RunSpec
    space: Space
    grid: tuple[Parameters, ...] | None
    on_data: Callable[[RunSpec], RunSpec] | None = None
    chosen_for: str | None = None

    @property
    def label(self) -> str:
        """As it is called in tables and in the database."""
        parts = (self.base.benchmark, self.base.method, self.chosen_for)
        return "/".join(part for part in parts if part is not None)

    @property
    def seeds(self) -> Sequence[int]:
        """Of the runs of a trial."""
        return range(self.sweep.seeds) if self.chosen_for is None else [self.base.seed]

    @property
    def direction(self) -> Direction:
        """Which way the objective is better."""
        return self.track.objectives[self.sweep.objective].direction

    @property
    def trials(self) -> int | None:
        """How many trials there are to be at most; None where only the hours end it."""
        if self.grid is None:
            return self.sweep.trials
        return min(self.sweep.trials or len(self.grid), len(self.grid))

    def run(self, parameters: Parameters, seed: int) -> RunSpec:
        """The run of a configuration with a seed."""
        settings = {**self.sweep.fixed, **parameters}
        if self.sweep.resplit:
            settings |= self.track.split_of(seed)
        run = _run(self.benchmark, self.method, seed, settings, self.chosen_for)
        if self.sweep.shares:
            settings |= shared(run.settings()["recipe"], self.sweep.shares)
            run = _run(self.benchmark, self.method, seed, settings, self.chosen_for)
        return run if self.on_data is None else self.on_data(run)

    def at(self, data_dir: Path | None) -> Plan:
        """This plan with runs that know the checksum of their data.

        Raises:
            UserError: they cannot be read.
        """
        on_data = partial(self.track.on_data, data_dir=data_dir)
        return replace(self, base=on_data(self.base), on_data=on_data)


def read(name: str, trials: int | None = None) -> list[Plan]:
    """The plans of a sweep, one for each of its benchmarks with each of its methods.

    Args:
        name: a path that ends in .toml, or a shipped name.
        trials: instead of the number in the file.

    Raises:
        UserError: the file cannot be read, a key is unknown or a value impossible.
    """
    entry = catalogue.load("sweep", name)
    table = entry.table if trials is None else {**entry.table, "trials": trials}
    return plans(entry.name, parsed(table, entry.path), entry.path)


def parsed(table: dict[str, Any], path: Path) -> Sweep:
    """A sweep from a plain table.

    Raises:
        UserError: a key is unknown or a value impossible; one line with the file and the key.
    """
    table = dict(table)
    for key in ("benchmark", "method"):
        if isinstance(table.get(key), str):
            table[key] = [table[key]]
        if isinstance(table.get(key), list):
            table[key] = [_beside(name, path) for name in table[key]]
    track = _track(table.get("benchmark"), path)
    table.setdefault("objective", track.objective)
    for name in ("fixed", "search"):
        if isinstance(table.get(name), dict):
            table[name] = _dotted(table[name], track)
    for where in (table, table.get("fixed"), table.get("search")):
        if isinstance(where, dict) and where.get("evaluate_on", SCORED_ON) != SCORED_ON:
            raise UserError(f"{path}: evaluate_on = {where['evaluate_on']!r}: {_NEVER_TEST}")
        if isinstance(where, dict):
            where.pop("evaluate_on", None)
    if table.get("search") == {}:
        raise UserError(f"{path}: [search] is empty; name the keys to be searched")
    if isinstance(table.get("search"), dict):
        table["search"] = {k: _searched(k, what, path) for k, what in table["search"].items()}
    if isinstance(table.get("pruning"), dict):
        table["pruning"] = validated(Pruning, table["pruning"], str(path), "pruning.")
    sweep = validated(Sweep, table, str(path))
    _check(sweep, track, path)
    return sweep.model_copy(update={"search": _in_order(sweep, path)})


def plans(name: str, sweep: Sweep, path: Path) -> list[Plan]:
    """What is to be searched: each benchmark with each method.

    Raises:
        UserError: a key of a recipe is unknown or a value impossible.
    """
    made: list[Plan] = []
    track = _track(sweep.benchmark, path)
    for benchmark in sweep.benchmark:
        for method in sweep.method:
            try:
                made += _plans(name, sweep, track, benchmark, method)
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
    labels = [plan.label for plan in made]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"{path}: {label} is there twice; name it once")
    _check_reached(sweep, made, path)
    return made


def _check_reached(sweep: Sweep, made: Sequence[Plan], path: Path) -> None:
    """See that every key is searched somewhere; examples have no values inside a range.

    Raises:
        UserError: the condition of one holds nowhere.
    """
    reached = {key for plan in made for parameters in plan.space.examples for key in parameters}
    for key, what in sweep.search.items():
        if key not in reached and not any(
            isinstance(sweep.search.get(condition), Range) for condition in what.when
        ):
            raise UserError(
                f"{path}: search.{key}: its `when` holds in no trial: mend its values, or leave "
                "the key out"
            )


def shared(recipe: Mapping[str, Any], shares: Mapping[str, float]) -> dict[str, int]:
    """The values of the keys of which a configuration is tried with a share only."""
    return {key: max(1, round(share * recipe[key])) for key, share in shares.items()}


def _beside(name: Any, path: Path) -> Any:
    """The path of a TOML that lies beside the sweep's; else the name as it stands."""
    if isinstance(name, str) and name.endswith(".toml") and (path.parent / name).is_file():
        return str(path.parent / name)
    return name


def _track(benchmarks: Any, path: Path) -> AnyTrack:
    """The track of all benchmarks of a sweep.

    Raises:
        UserError: they are of several.
    """
    given = benchmarks if isinstance(benchmarks, list) else []
    names = [name for name in given if isinstance(name, str)]
    try:
        by_name = {name: catalogue.track_of(catalogue.load("benchmark", name)) for name in names}
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    by_track = {track.name: (name, track) for name, track in by_name.items()}
    if len(by_track) > 1:
        words = " and ".join(f"{name} ({track})" for track, (name, _) in by_track.items())
        raise UserError(f"{path}: benchmark: {words} cannot be in one sweep; write one for each")
    return next(iter(by_name.values())) if by_name else tracks.find(DEFAULT_TRACK)


def _plans(name: str, sweep: Sweep, track: AnyTrack, benchmark: str, method: str) -> list[Plan]:
    """One plan; or, where settings are chosen per seed, one for each seed and data set.

    Raises:
        UserError: a key of a recipe is unknown or a value impossible.
    """
    if sweep.per_seed:
        bases = _runs(benchmark, method, range(sweep.seeds), sweep.fixed)
        keys: list[str | None] = [track.selection_unit(base.settings()) for base in bases]
    else:
        bases, keys = [_run(benchmark, method, 0, sweep.fixed, None)], [None]
    made = []
    for base, key in zip(bases, keys, strict=True):
        space = Space(sweep.search, _values(base, track))
        grid = tuple(space.grid()) if sweep.kind == "grid" else None
        made.append(Plan(name, sweep, track, benchmark, method, base, space, grid, None, key))
    _check_values(made[0])
    return made


def _values(base: RunSpec, track: AnyTrack) -> dict[str, Any]:
    """All that a condition may name, with a dot where it is of an inner table."""
    tables = base.model_dump()
    values = {**base.settings(), **_dotted(tables["recipe"], track)}
    data = tables[track.spec.DATA]
    return values | {f"{track.spec.DATA}.{key}": value for key, value in data.items()}


def _check_values(plan: Plan) -> None:
    """See that every key is one of a run, and every value possible."""
    sweep, track = plan.sweep, plan.track

    def run(settings: Parameters) -> RunSpec:
        fixed = {**sweep.fixed, **settings}
        return _run(plan.benchmark, plan.method, plan.base.seed, fixed, plan.chosen_for)

    for key in sweep.shares:
        if not isinstance(plan.base.settings()["recipe"].get(key), int):
            raise UserError(f"shares.{key}: is no key of a recipe with a whole number")
    for key, what in sweep.search.items():
        for condition in what.when:
            if condition not in plan.space.base and condition not in sweep.search:
                tables = ("recipe", track.spec.DATA, "seed")
                known = [name for name in plan.space.base if name not in tables]
                raise UserError(
                    f"search.{key}: `when` names the unknown key {condition!r}; the nearest "
                    f"known one is {nearest(condition, known)!r}"
                )
    track.check_runs([run(parameters) for parameters in plan.space.examples])


def _run(
    benchmark: str, method: str, seed: int, settings: Mapping[str, Any], chosen_for: str | None
) -> RunSpec:
    """One run of a seed: the only one, or that of a key.

    Raises:
        UserError: there are several, as of several data sets.
    """
    runs = _runs(benchmark, method, [seed], settings)
    if chosen_for is None and len(runs) > 1:
        raise UserError(
            f"{runs[0].benchmark} has {len(runs)} runs of one seed, and a score of each: choose "
            "settings for each with per_seed = true, or name one data set under [fixed]"
        )
    if chosen_for is None:
        return runs[0]
    track = tracks.find(runs[0].TRACK)
    return next(run for run in runs if track.selection_unit(run.settings()) == chosen_for)


def _runs(
    benchmark: str, method: str, seeds: Sequence[int], settings: Mapping[str, Any]
) -> list[RunSpec]:
    """The one place where a sweep makes runs, and none is ever scored on anything else."""
    return planning.plan(benchmark, [method], seeds, {**settings, "evaluate_on": SCORED_ON})


def _check(sweep: Sweep, track: AnyTrack, path: Path) -> None:
    if sweep.objective not in track.objectives:
        raise UserError(
            f"{path}: unknown objective {sweep.objective!r}; the nearest is "
            f"{nearest(sweep.objective, track.objectives)!r} (there are "
            f"{', '.join(track.objectives)})"
        )
    if sweep.pruning is not None and not track.has_scores_between:
        raise UserError(
            f"{path}: pruning: runs of {track.name} have no score before their end; leave "
            "[pruning] out"
        )
    if sweep.resplit and sweep.per_seed:
        raise UserError(f"{path}: resplit and per_seed: every seed has data of its own; keep one")
    if sweep.resplit:
        keys = track.split_of(0)
        if not keys:
            raise UserError(
                f"{path}: resplit: of {track.name} other validation data are other test data "
                "too; leave it out"
            )
        for key in keys:
            if key in sweep.fixed or key in sweep.search:
                raise UserError(f"{path}: resplit sets {key} to each seed; leave one of them out")
    if sweep.kind != "grid" and sweep.trials is None and sweep.hours is None:
        raise UserError(f"{path}: a {sweep.kind} search needs an end: trials = N or hours = H")
    _check_keys(sweep, track, path)


def _check_keys(sweep: Sweep, track: AnyTrack, path: Path) -> None:
    for key, what in sweep.search.items():
        if len(key) > 200:
            raise UserError(f"{path}: search.{key[:20]}...: the key is too long")
        if sweep.per_seed and key.startswith(f"{track.spec.DATA}."):
            raise UserError(f"{path}: search.{key}: per seed, keys of the recipe are chosen alone")
        if key in ("benchmark", "method"):
            raise UserError(f"{path}: search.{key}: write {key} = [...] at the top instead")
        if key in sweep.fixed:
            raise UserError(f"{path}: {key} is under [fixed] and under [search]; take one away")
        if sweep.kind == "grid" and isinstance(what, Range):
            raise UserError(f"{path}: search.{key}: a grid needs a list of choices, not a range")


def _in_order(sweep: Sweep, path: Path) -> dict[str, Searchable]:
    try:
        return in_order(sweep.search)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def _searched(key: str, what: Any, path: Path) -> Searchable:
    where = f"search.{key}"
    if isinstance(what, list) and any(isinstance(case, dict) for case in what):
        return validated(Cases, {"cases": what}, str(path), f"{where}.")
    if isinstance(what, list):
        return validated(Choices, {"choices": what}, str(path), f"{where}.")
    if not isinstance(what, dict):
        raise UserError(
            f"{path}: {where} = {what!r}: give a list of choices or {{ low = ..., high = ... }}; "
            "a key with one value goes under [fixed]"
        )
    if "choices" in what:
        return validated(Choices, what, str(path), f"{where}.")
    return validated(Range, what, str(path), f"{where}.")


def _dotted(table: Mapping[str, Any], track: AnyTrack) -> dict[str, Any]:
    """A table whose inner ones, `options` and that of the data, are keys with a dot."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("options", track.spec.DATA) and isinstance(value, dict):
            flat |= {f"{key}.{inner}": content for inner, content in value.items()}
        else:
            flat[key] = value
    return flat
