"""The plans of a sweep: one validated search per benchmark and method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError, nearest
from vcl_radial.runs import catalogue, planning, tracks
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import SCORED_ON, AnyTrack, Direction
from vcl_radial.sweeps.space import Parameters, Range, Space
from vcl_radial.sweeps.specification import Sweep, dotted, parsed


@dataclass(frozen=True)
class Plan:
    """A validated search with one method on one benchmark, which can make its runs."""

    name: str
    sweep: Sweep
    benchmark: str
    method: str
    base: RunSpec
    space: Space
    grid: tuple[Parameters, ...] | None
    on_data: Callable[[RunSpec], RunSpec] | None = None

    @property
    def track(self) -> AnyTrack:
        """The track of the benchmark."""
        return tracks.find(self.base.TRACK)

    @property
    def chosen_for(self) -> str | None:
        """The key of the unit for which settings are chosen; None for all seeds together."""
        return self.track.selection_unit(self.base.settings()) if self.sweep.per_seed else None

    @property
    def label(self) -> str:
        """The name of the search in tables and in the database."""
        parts = (self.base.benchmark, self.base.method, self.chosen_for)
        return "/".join(part for part in parts if part is not None)

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the runs of a trial."""
        return range(self.sweep.seeds) if self.chosen_for is None else [self.base.seed]

    @property
    def direction(self) -> Direction:
        """The better direction of the objective."""
        return self.track.objectives[self.sweep.objective].direction

    @property
    def trials(self) -> int | None:
        """The largest number of trials; None if only the hours end the search."""
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
            recipe, shares = run.settings()["recipe"], self.sweep.shares.items()
            settings |= {key: max(1, round(share * recipe[key])) for key, share in shares}
            run = _run(self.benchmark, self.method, seed, settings, self.chosen_for)
        return run if self.on_data is None else self.on_data(run)

    def at(self, data_dir: Path | None) -> Plan:
        """This plan with checksums of the data in its runs.

        Raises:
            UserError: the data cannot be read.
        """
        on_data = methodcaller("on_data", data_dir)
        return replace(self, base=on_data(self.base), on_data=on_data)


def read(name: str, trials: int | None = None) -> list[Plan]:
    """Read the plans of a sweep, one per benchmark and method.

    Args:
        name: a path that ends in .toml, or a shipped name.
        trials: number of trials that replaces the one in the file.

    Raises:
        UserError: the file cannot be read, a key is unknown or a value impossible.
    """
    entry = catalogue.load("sweep", name)
    table = entry.table if trials is None else {**entry.table, "trials": trials}
    return plans(entry.name, parsed(table, entry.path), entry.path)


def plans(name: str, sweep: Sweep, path: Path) -> list[Plan]:
    """Make the plans of a sweep, one per benchmark and method.

    Raises:
        UserError: a key of a recipe is unknown or a value impossible.
    """
    made: list[Plan] = []
    for benchmark in sweep.benchmark:
        for method in sweep.method:
            try:
                made += _plans(name, sweep, benchmark, method)
            except UserError as error:
                raise UserError(str(error), path) from None
    labels = [plan.label for plan in made]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"{label} is there twice; name it once", path)
    _check_reached(sweep, made, path)
    return made


def _check_reached(sweep: Sweep, made: Sequence[Plan], path: Path) -> None:
    """Check that every key is searched in some trial; examples have no values inside a range.

    Raises:
        UserError: the condition of a key never holds.
    """
    reached = {key for plan in made for parameters in plan.space.examples for key in parameters}
    for key, domain in sweep.search.items():
        if key not in reached and not any(
            isinstance(sweep.search.get(condition), Range) for condition in domain.when
        ):
            raise UserError(
                f"search.{key}: its `when` holds in no trial: fix its values, or leave the key out",
                path,
            )


def _plans(name: str, sweep: Sweep, benchmark: str, method: str) -> list[Plan]:
    """One plan; or one per seed and data set if settings are chosen per seed.

    Raises:
        UserError: a key of a recipe is unknown or a value impossible.
    """
    if sweep.per_seed:
        bases = _runs(benchmark, method, range(sweep.seeds), sweep.fixed)
    else:
        bases = [_run(benchmark, method, 0, sweep.fixed, None)]
    made = []
    for base in bases:
        space = Space(sweep.search, _values(base))
        grid = tuple(space.grid()) if sweep.kind == "grid" else None
        made.append(Plan(name, sweep, benchmark, method, base, space, grid))
    _check_values(made[0])
    return made


def _values(base: RunSpec) -> dict[str, Any]:
    """The values that a condition may name; keys of inner tables are dotted."""
    tables, track = base.model_dump(), tracks.find(base.TRACK)
    inner = {**tables["recipe"], base.DATA: tables[base.DATA]}
    return {**base.settings(), **dotted(inner, track)}


def _check_values(plan: Plan) -> None:
    """Check that every key belongs to a run, and that every value is possible."""
    sweep, track = plan.sweep, plan.track
    for key in sweep.shares:
        if not isinstance(plan.base.settings()["recipe"].get(key), int):
            raise UserError(f"shares.{key}: is no key of a recipe with a whole number")
    for key, domain in sweep.search.items():
        for condition in domain.when:
            if condition not in plan.space.base and condition not in sweep.search:
                tables = ("recipe", track.spec.DATA, "seed")
                known = [name for name in plan.space.base if name not in tables]
                raise UserError(
                    f"search.{key}: `when` names the unknown key {condition!r}; the nearest "
                    f"known one is {nearest(condition, known)!r}"
                )
    seed = plan.base.seed
    track.check_runs([plan.run(parameters, seed) for parameters in plan.space.examples])


def _run(
    benchmark: str, method: str, seed: int, settings: Mapping[str, Any], chosen_for: str | None
) -> RunSpec:
    """The run of a seed: the only one, or the one with the key `chosen_for`.

    Raises:
        UserError: a seed has several runs, such as one per data set.
    """
    runs = _runs(benchmark, method, [seed], settings)
    if chosen_for is None and len(runs) > 1:
        raise UserError(
            f"{runs[0].benchmark} has {len(runs)} runs per seed, each with a score: choose "
            "settings for each with per_seed = true, or name one data set under [fixed]"
        )
    if chosen_for is None:
        return runs[0]
    track = tracks.find(runs[0].TRACK)
    return next(run for run in runs if track.selection_unit(run.settings()) == chosen_for)


def _runs(
    benchmark: str, method: str, seeds: Sequence[int], settings: Mapping[str, Any]
) -> list[RunSpec]:
    """Plan runs; all runs of a sweep are made here, so that all are scored on validation data."""
    return planning.plan(benchmark, [method], seeds, {**settings, "evaluate_on": SCORED_ON})
