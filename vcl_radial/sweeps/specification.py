"""What a sweep is: a TOML, every key validated before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from vcl_radial.errors import UserError
from vcl_radial.runs import catalogue
from vcl_radial.runs.settings import Count, Positive, Settings
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import SCORED_ON, AnyTrack, Direction
from vcl_radial.sweeps.space import Choices, Parameters, Range, Space, in_order
from vcl_radial.sweeps.tracks import track_of_benchmark
from vcl_radial.tracks.continual.track import Continual

M = TypeVar("M", bound=BaseModel)
_NEVER_TEST = (
    "a sweep chooses by its scores, so it is scored on validation data only; leave the key out"
)


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
    """

    description: str = ""
    kind: Literal["grid", "random", "tpe"]
    benchmark: Annotated[list[str], Field(min_length=1)]
    method: Annotated[list[str], Field(min_length=1)]
    objective: str
    seeds: Annotated[int, Field(ge=1, le=1000)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    resplit: bool = False
    trials: Count | None = None
    hours: Positive | None = None
    at_once: Count = 4
    pruning: Pruning | None = None
    fixed: dict[str, Any] = Field(default={})
    search: Annotated[dict[str, Choices | Range], Field(min_length=1)]

    @property
    def ordered(self) -> bool:
        """Whether a trial depends on what came of others."""
        return self.kind == "tpe" or self.pruning is not None


@dataclass(frozen=True)
class Plan:
    """A validated sweep on one benchmark with one method: what is needed to make its runs."""

    name: str
    sweep: Sweep
    track: AnyTrack
    benchmark: str
    method: str
    base: RunSpec
    space: Space
    grid: tuple[Parameters, ...] | None
    on_data: Callable[[RunSpec], RunSpec] | None = None

    @property
    def label(self) -> str:
        """As it is called in tables and in the database."""
        return f"{self.base.benchmark}/{self.base.method}"

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
        run = _run(self.track, self.benchmark, self.method, seed, settings)
        return run if self.on_data is None else self.on_data(run)

    def at(self, data_dir: Path | None) -> Plan:
        """This plan with runs that know the checksum of their data.

        Raises:
            UserError: they cannot be read.
        """
        on_data = partial(self.track.on_data, data_dir=data_dir)
        return replace(self, base=on_data(self.base), on_data=on_data)


def find(name: str) -> Path:
    """The file of a sweep: a path that ends in .toml, or a shipped name.

    Raises:
        UserError: there is no such shipped sweep.
    """
    if name.endswith(".toml"):
        return Path(name)
    return catalogue.load("sweep", name).path


def read(path: Path, trials: int | None = None) -> list[Plan]:
    """The plans of a sweep's TOML, one for each of its benchmarks with each of its methods.

    Args:
        path: the file.
        trials: instead of the number in the file.

    Raises:
        UserError: the file cannot be read, a key is unknown or a value impossible.
    """
    table = catalogue.load("sweep", str(path)).table
    if trials is not None:
        table["trials"] = trials
    return plans(path.stem, parsed(table, path), path)


def parsed(table: dict[str, Any], path: Path) -> Sweep:
    """A sweep from a plain table.

    Raises:
        UserError: a key is unknown or a value impossible; one line with the file and the key.
    """
    table = dict(table)
    for key in ("benchmark", "method"):
        if isinstance(table.get(key), str):
            table[key] = [table[key]]
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
    if isinstance(table.get("search"), dict):
        table["search"] = {k: _searched(k, what, path) for k, what in table["search"].items()}
    if isinstance(table.get("pruning"), dict):
        table["pruning"] = _model(Pruning, table["pruning"], path, "pruning.")
    sweep = _model(Sweep, table, path)
    _check(sweep, track, path)
    return sweep.model_copy(update={"search": _in_order(sweep, path)})


def plans(name: str, sweep: Sweep, path: Path) -> list[Plan]:
    """What is to be searched: each benchmark with each method.

    Raises:
        UserError: a key of a recipe is unknown or a value impossible.
    """
    found: list[Plan] = []
    track = _track(sweep.benchmark, path)
    for benchmark in sweep.benchmark:
        for method in sweep.method:
            try:
                found.append(_plan(name, sweep, track, benchmark, method))
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
    for number, plan in enumerate(found):
        if plan.label in {other.label for other in found[:number]}:
            raise UserError(f"{path}: {plan.label} is there twice; name it once")
    return found


def _track(benchmarks: Any, path: Path) -> AnyTrack:
    """The track of all benchmarks of a sweep.

    Raises:
        UserError: they are of several.
    """
    given = benchmarks if isinstance(benchmarks, list) else []
    names = [name for name in given if isinstance(name, str)]
    try:
        found = {name: track_of_benchmark(name) for name in names}
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    by_command = {track.name: (name, track) for name, track in found.items()}
    if len(by_command) > 1:
        words = " and ".join(f"{name} ({c})" for c, (name, _) in by_command.items())
        raise UserError(f"{path}: benchmark: {words} cannot be in one sweep; write one for each")
    return next(iter(found.values())) if found else Continual()


def _plan(name: str, sweep: Sweep, track: AnyTrack, benchmark: str, method: str) -> Plan:
    base = _run(track, benchmark, method, 0, sweep.fixed)
    tables = base.model_dump()
    values = {**base.settings(), **_dotted(tables["recipe"], track)}
    values |= {f"{track.spec.DATA}.{key}": value for key, value in tables[track.spec.DATA].items()}
    space = Space(sweep.search, values)
    for key, what in sweep.search.items():
        for condition in what.when:
            if condition not in values and condition not in sweep.search:
                known = [k for k in values if k not in ("recipe", track.spec.DATA, "seed")]
                nearest = get_close_matches(condition, known, 1, cutoff=0.0)[0]
                raise UserError(
                    f"search.{key}: `when` names the unknown key {condition!r}; the nearest "
                    f"known one is {nearest!r}"
                )
        for value in what.extremes():
            _run(track, benchmark, method, 0, {**sweep.fixed, key: value})
    if not any(what.when for what in sweep.search.values()):
        # A run has a value of every key; with conditions, which keys it has depends on others.
        first = {key: what.extremes()[0] for key, what in sweep.search.items()}
        track.check_runs(
            [
                _run(track, benchmark, method, 0, {**sweep.fixed, **first, key: value})
                for key, what in sweep.search.items()
                for value in what.extremes()
            ]
        )
    grid = tuple(space.grid()) if sweep.kind == "grid" else None
    return Plan(name, sweep, track, benchmark, method, base, space, grid)


def _run(
    track: AnyTrack, benchmark: str, method: str, seed: int, settings: Mapping[str, Any]
) -> RunSpec:
    """The one place where a sweep makes a run, and none is ever scored on anything else."""
    settings = {**settings, "evaluate_on": SCORED_ON}
    run: RunSpec
    (run,) = catalogue.plan(benchmark, [method], [seed], settings)
    return run


def _check(sweep: Sweep, track: AnyTrack, path: Path) -> None:
    if sweep.objective not in track.objectives:
        nearest = get_close_matches(sweep.objective, track.objectives, 1, cutoff=0.0)[0]
        raise UserError(
            f"{path}: unknown objective {sweep.objective!r}; the nearest known one is {nearest!r}"
        )
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
    for key, what in sweep.search.items():
        if len(key) > 200:
            raise UserError(f"{path}: search.{key[:20]}...: the key is too long")
        if key in ("benchmark", "method"):
            raise UserError(f"{path}: search.{key}: write {key} = [...] at the top instead")
        if key in sweep.fixed:
            raise UserError(f"{path}: {key} is under [fixed] and under [search]; take one away")
        if sweep.kind == "grid" and isinstance(what, Range):
            raise UserError(f"{path}: search.{key}: a grid needs a list of choices, not a range")


def _in_order(sweep: Sweep, path: Path) -> dict[str, Choices | Range]:
    try:
        return in_order(sweep.search)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def _searched(key: str, what: Any, path: Path) -> Choices | Range:
    where = f"search.{key}"
    if isinstance(what, list):
        return _model(Choices, {"choices": what}, path, f"{where}.")
    if not isinstance(what, dict):
        raise UserError(
            f"{path}: {where} = {what!r}: give a list of choices or {{ low = ..., high = ... }}; "
            "a key with one value goes under [fixed]"
        )
    if "choices" in what:
        return _model(Choices, what, path, f"{where}.")
    return _model(Range, what, path, f"{where}.")


def _dotted(table: Mapping[str, Any], track: AnyTrack) -> dict[str, Any]:
    """A table whose inner ones, `options` and that of the data, are keys with a dot."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("options", track.spec.DATA) and isinstance(value, dict):
            flat |= {f"{key}.{inner}": content for inner, content in value.items()}
        else:
            flat[key] = value
    return flat


def _model(model: type[M], table: dict[str, Any], path: Path, where: str = "") -> M:
    """A table validated, or its first fault in one line.

    Raises:
        UserError: a key is unknown or a value impossible.
    """
    try:
        return model.model_validate(table)
    except ValidationError as error:
        # A misspelt key is the reason why another one is missing.
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    missing = fault["type"] == "missing"
    place = list(map(str, fault["loc"])) if missing else _place(fault["loc"], table)
    key = where + ".".join(place) if place else where.rstrip(".")
    if fault["type"] == "extra_forbidden":
        nearest = get_close_matches(place[-1], model.model_fields, 1, cutoff=0.0)[0]
        raise UserError(f"{path}: unknown key {key!r}; the nearest known one is {nearest!r}")
    if missing:
        raise UserError(f"{path}: the key {key!r} is missing")
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    shown = f" = {fault['input']!r}" if not isinstance(fault["input"], dict) else ""
    raise UserError(f"{path}: {key}{shown}: {message}")


def _place(parts: Sequence[int | str], table: Any) -> list[str]:
    """Where a fault is, as keys of the table.

    What pydantic puts after them, the member of a union that it tried, means nothing to a user.
    """
    place = []
    for part in parts:
        found = isinstance(table, dict) and part in table
        if not found and not (isinstance(table, list) and isinstance(part, int)):
            break
        place.append(str(part))
        table = table[part]
    return place
