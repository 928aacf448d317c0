"""The whole of a command: choose settings where asked to, run what is not finished, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs.folder import make_folder
from vcl_radial.tracks.regression.data import RegressionData, load_data
from vcl_radial.tracks.regression.plan import (
    Benchmark,
    Method,
    choose,
    final_units,
    in_words,
    load_benchmark,
    load_methods,
    sequence_units,
    validation_units,
)
from vcl_radial.tracks.regression.runner import perform
from vcl_radial.tracks.regression.units import Planned, Unit, finished_result


@dataclass(frozen=True)
class Choices:
    """What the command line says.

    Attributes:
        benchmark: a name or a path.
        methods: names or paths; none for those of the benchmark.
        sets: some of the benchmark's; none for all.
        splits: only the first so many; None for all.
        seed: of starts, batches and draws.
        tune: choose the settings of the grid on held-out training rows.
        overrides: keys of the recipes.
        out: the folder of the results.
        to: the folder of the report.
        data_dir: see `vcl_radial.tracks.regression.data`.
        jobs: worker processes.
        lanes: at most so many in one program.
        command: in words, for the report.
    """

    benchmark: str
    methods: Sequence[str]
    sets: Sequence[str]
    splits: int | None
    seed: int
    tune: bool
    overrides: Mapping[str, Any]
    out: Path
    to: Path
    data_dir: Path | None
    jobs: int
    lanes: int
    command: str


def regress(choices: Choices) -> None:
    """Carry a command out.

    Raises:
        UserError: something the user can mend.
    """
    benchmark = load_benchmark(choices.benchmark)
    methods = load_methods(choices.methods or benchmark.methods, benchmark, choices.overrides)
    sets = _sets(benchmark, choices.sets)
    if choices.tune and benchmark.slices is not None:
        raise UserError(
            f"{choices.benchmark}: --tune does not go with slices, whose settings are fixed "
            "before the first one; leave it out, or set them with --set"
        )
    data = [load_data(name, choices.data_dir) for name in sets]
    if benchmark.slices is not None:
        _check_slices(choices, data, benchmark.slices)
    make_folder(choices.to)
    if benchmark.slices is not None:
        planned = _in_sequence(choices, data, methods, benchmark.slices)
    elif choices.tune:
        planned = _tuned(choices, data, methods, benchmark.validation)
    else:
        planned = [
            Planned(unit, "")
            for table in data
            for method in methods
            for unit in final_units(
                table,
                Method(method.name, method.recipe, []),
                {split: {} for split in _splits(table, choices.splits)},
                choices.seed,
            )
        ]
    _perform(choices, [p.unit for p in planned], Path(choices.benchmark).stem)

    from vcl_radial.tracks.regression.report import write_report

    shares = {m.name: m.search_share for m in methods if len(m.settings()) > 1}
    write_report(
        planned,
        choices.out,
        choices.to,
        search_shares=shares if choices.tune else None,
        command=choices.command,
    )


def _tuned(
    choices: Choices, data: Sequence[RegressionData], methods: Sequence[Method], share: float
) -> list[Planned]:
    """Validation units first; then the final ones with the setting that each split has chosen."""
    cases = [
        (table, method, _splits(table, choices.splits)) for table in data for method in methods
    ]
    searched = [case for case in cases if len(case[1].settings()) > 1]
    units = [
        unit
        for table, method, splits in searched
        for unit in validation_units(table, method, splits, share, choices.seed)
    ]
    _perform(choices, units, f"{Path(choices.benchmark).stem}, choosing settings")
    planned = []
    for table, method, splits in cases:
        chosen = {split: method.settings()[0] for split in splits}
        if len(method.settings()) > 1:
            found = [
                finished_result(unit, choices.out)[0]
                for unit in validation_units(table, method, splits, share, choices.seed)
            ]
            chosen = choose(method, splits, found)
        for unit in final_units(table, method, chosen, choices.seed):
            planned.append(Planned(unit, in_words(chosen[unit.splits[0]])))
    return planned


def _in_sequence(
    choices: Choices, data: Sequence[RegressionData], methods: Sequence[Method], count: int
) -> list[Planned]:
    return [
        Planned(unit, "")
        for table in data
        for method in methods
        for unit in sequence_units(
            table, method, _splits(table, choices.splits), count, choices.seed
        )
    ]


def _perform(choices: Choices, units: Sequence[Unit], title: str) -> None:
    perform(
        units,
        choices.out,
        choices.data_dir,
        jobs=choices.jobs,
        lanes=choices.lanes,
        title=title,
    )


def _sets(benchmark: Benchmark, chosen: Sequence[str]) -> Sequence[str]:
    for name in chosen:
        if name not in benchmark.sets:
            raise UserError(f"--sets {name}: choose from {', '.join(benchmark.sets)}")
    return list(dict.fromkeys(chosen)) or benchmark.sets


def _check_slices(choices: Choices, data: Sequence[RegressionData], count: int) -> None:
    for table in data:
        fewest = min(len(table.splits[k].train) for k in _splits(table, choices.splits))
        if count > fewest:
            raise UserError(
                f"{choices.benchmark}: slices = {count}: more than the {fewest} training rows of "
                f"{table.name}; lower it"
            )


def _splits(data: RegressionData, most: int | None) -> list[int]:
    return list(range(len(data.splits)))[:most]
