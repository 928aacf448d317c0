"""The specification of a sweep: a TOML, every key validated before training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from vcl_radial.config.ranges import Count, Positive
from vcl_radial.errors import UserError, nearest
from vcl_radial.runs import catalogue, tracks
from vcl_radial.runs.settings import Settings, validated
from vcl_radial.runs.spec import DEFAULT_TRACK
from vcl_radial.runs.track import SCORED_ON, AnyTrack
from vcl_radial.sweeps.space import Cases, Choices, Range, Searchable, in_order

_NEVER_TEST = (
    "a sweep chooses by its scores, so it is scored on validation data only; leave the key out"
)
Share = Annotated[float, Field(gt=0, lt=1)]
MOST_SEEDS = 1000


class Pruning(Settings):
    """The rule that stops a trial early.

    It applies after every task (or epoch): a trial is stopped if the average accuracy (or best
    validation AUC) of its first seed so far is below a quantile of earlier trials at this step.

    Attributes:
        quantile: the quantile.
        after: smallest number of earlier trials.
    """

    quantile: Share = 0.5
    after: Count = 8


class Sweep(Settings):
    """The keys of a sweep's TOML.

    Attributes:
        resplit: whether every seed holds out different validation data, so that the settings do not
            depend on one validation set.
        per_seed: whether settings are chosen separately for every seed and data set, by the scores
            of this seed alone, since validation data of one seed may be test data of another.
        shares: fractions of the values of keys, such as `steps`, that a trial uses; the recipes of
            the report have the full values.
    """

    description: str = ""
    kind: Literal["grid", "random", "tpe"]
    benchmark: Annotated[list[str], Field(min_length=1)]
    method: Annotated[list[str], Field(min_length=1)]
    objective: str
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    resplit: bool = False
    per_seed: bool = False
    trials: Count | None = None
    hours: Positive | None = None
    at_once: Count = 4
    pruning: Pruning | None = None
    shares: dict[str, Share] = Field(default={})
    fixed: dict[str, Any] = Field(default={})
    search: Annotated[dict[str, Searchable], Field(min_length=1), AfterValidator(in_order)]

    @property
    def ordered(self) -> bool:
        """Whether a trial depends on the results of other trials."""
        return self.kind == "tpe" or self.pruning is not None


def parsed(table: dict[str, Any], path: Path) -> Sweep:
    """Make a sweep from a plain table.

    Raises:
        UserError: a key is unknown or a value impossible; one line with the file and the key.
    """
    table = dict(table)
    for key in ("benchmark", "method"):
        if isinstance(table.get(key), str):
            table[key] = [table[key]]
        if isinstance(table.get(key), list):
            table[key] = [_beside(name, path) for name in table[key]]
    track = track_of(table.get("benchmark"), path)
    table.setdefault("objective", track.objective)
    for name in ("fixed", "search"):
        if isinstance(table.get(name), dict):
            table[name] = dotted(table[name], track)
    for where in (table, table.get("fixed"), table.get("search")):
        if isinstance(where, dict) and where.get("evaluate_on", SCORED_ON) != SCORED_ON:
            raise UserError(f"evaluate_on = {where['evaluate_on']!r}: {_NEVER_TEST}", path)
        if isinstance(where, dict):
            where.pop("evaluate_on", None)
    if isinstance(table.get("search"), dict):
        table["search"] = {k: _domain(k, value, path) for k, value in table["search"].items()}
    sweep = validated(Sweep, table, str(path))
    for fault in _faults(sweep, track):
        raise UserError(fault, path)
    return sweep


def _beside(name: Any, path: Path) -> Any:
    """The path of a TOML beside the sweep's; else the name itself."""
    if isinstance(name, str) and name.endswith(".toml") and (path.parent / name).is_file():
        return str(path.parent / name)
    return name


def track_of(benchmarks: Any, path: Path) -> AnyTrack:
    """The track of all benchmarks of a sweep.

    Raises:
        UserError: the benchmarks belong to several tracks.
    """
    benchmarks = benchmarks if isinstance(benchmarks, list) else []
    names = [name for name in benchmarks if isinstance(name, str)]
    try:
        by_name = {name: catalogue.track_of(catalogue.load("benchmark", name)) for name in names}
    except UserError as error:
        raise UserError(str(error), path) from None
    by_track = {track.name: (name, track) for name, track in by_name.items()}
    if len(by_track) > 1:
        text = " and ".join(f"{name} ({track})" for track, (name, _) in by_track.items())
        raise UserError(f"benchmark: {text} cannot be in one sweep; write one for each", path)
    return next(iter(by_name.values())) if by_name else tracks.find(DEFAULT_TRACK)


def _faults(sweep: Sweep, track: AnyTrack) -> Iterator[str]:
    """What contradicts each other in a sweep, or is impossible in its track."""
    if sweep.objective not in track.objectives:
        yield (
            f"unknown objective {sweep.objective!r}; the nearest is "
            f"{nearest(sweep.objective, track.objectives)!r} (there are "
            f"{', '.join(track.objectives)})"
        )
    if sweep.pruning is not None and not track.has_scores_between:
        yield f"pruning: runs of {track.name} have no score before their end; leave [pruning] out"
    if sweep.resplit and sweep.per_seed:
        yield "resplit and per_seed: both give each seed its data; keep one"
    split = track.split_of(0) if sweep.resplit else {}
    if sweep.resplit and not split:
        yield (
            f"resplit: in {track.name} other validation data change the test data too; leave it out"
        )
    for key in split.keys() & (sweep.fixed.keys() | sweep.search.keys()):
        yield f"resplit sets {key} to each seed; leave one of them out"
    if sweep.kind != "grid" and sweep.trials is None and sweep.hours is None:
        yield f"a {sweep.kind} search needs an end: trials = N or hours = H"
    for key, domain in sweep.search.items():
        if sweep.per_seed and key.startswith(f"{track.spec.DATA}."):
            yield f"search.{key}: per seed, search only keys of the recipe"
        if key in ("benchmark", "method"):
            yield f"search.{key}: write {key} = [...] at the top instead"
        if key in sweep.fixed:
            yield f"{key} is under [fixed] and under [search]; take one away"
        if sweep.kind == "grid" and isinstance(domain, Range):
            yield f"search.{key}: a grid needs a list of choices, not a range"


def _domain(key: str, value: Any, path: Path) -> Searchable:
    where = f"search.{key}"
    if isinstance(value, list):
        has_cases = any(isinstance(case, dict) for case in value)
        value = {"cases" if has_cases else "choices": value}
    if not isinstance(value, dict):
        raise UserError(
            f"{where} = {value!r}: give a list of choices or {{ low = ..., high = ... }}; "
            "a key with one value goes under [fixed]",
            path,
        )
    kinds: dict[str, type[Searchable]] = {"cases": Cases, "choices": Choices}
    kind = next((kind for key, kind in kinds.items() if key in value), Range)
    return validated(kind, value, str(path), f"{where}.")


def dotted(table: Mapping[str, Any], track: AnyTrack) -> dict[str, Any]:
    """A table with the keys of its inner tables, `options` and the data, as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("options", track.spec.DATA) and isinstance(value, dict):
            flat |= {f"{key}.{inner}": content for inner, content in value.items()}
        else:
            flat[key] = value
    return flat
