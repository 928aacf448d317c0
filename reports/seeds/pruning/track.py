"""Networks that are trained, pruned and scored on the run machine, and the numbers they leave."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from vcl_radial.errors import DataError, UserError
from vcl_radial.files.reading import read_json
from vcl_radial.runs import catalogue, environment, planning
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import ENVIRONMENT, RunFolder
from vcl_radial.runs.runner import perform
from vcl_radial.runs.sections import Section, Table, Text
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Objective, R, Track

if TYPE_CHECKING:
    import pandas as pd

    from reports.papers.analysis import Setting
    from vcl_radial.runs.track import FinishedRun

NUMBERS = "numbers.json"
"""What is kept of a run: plain numbers by name."""

_HERE = Path(__file__).parent


class PruningSpec(RunSpec):
    """One network, trained and pruned."""

    FILES: ClassVar[tuple[str, ...]] = (NUMBERS,)


class Pruning(Track[R]):
    """One network after another, trained, pruned and scored."""

    methods = ()
    step = "epoch"
    objectives: ClassVar = {
        "validation_error": Objective("minimize", "validation error (%)"),
    }
    worker_modules: ClassVar[Sequence[str]] = ("vcl_radial.runs.attempt", __name__)
    has_scores_between = False

    def scores_so_far(self, folder: RunFolder[R]) -> dict[int, float]:
        """Return no scores: a network is scored when it is pruned."""
        return {}

    def score(self, folder: RunFolder[R], objective: str) -> float | None:
        """The score of the pruned network, if there are validation images."""
        value = Result.of(folder).numbers.get(objective)
        return None if value is None else float(value)

    def chance(self, folder: RunFolder[R]) -> float | None:
        """The accuracy of a guess among ten classes."""
        return 90.0

    def epochs(self, run: R) -> int:
        """Number of epochs in the recipe."""
        return int(getattr(run, "recipe").epochs)  # noqa: B009

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """`numbers`: the single ones, by name."""
        import pandas as pd

        try:
            numbers = read_json(path / NUMBERS)
        except (OSError, ValueError) as error:
            raise DataError(f"{NUMBERS} cannot be read: {error}") from None
        single = {name: [value] for name, value in numbers.items() if not isinstance(value, dict)}
        return {"numbers": pd.DataFrame(single)}

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """The numbers of every run; the page of the paper's figure has more."""
        names = list(dict.fromkeys(n for run in runs for n in run.tables["numbers"].columns))
        rows = []
        for run in runs:
            (numbers,) = run.tables["numbers"].to_dict("records")
            cells = [str(numbers.get(name, "–")) for name in names]
            rows.append([run.method, str(run.spec.seed), *cells])
        page = Text(f"python -m reports {runs[0].spec.benchmark}: the paper beside these runs.")
        return [Section("Numbers", [Table(["method", "seed", *names], rows), page])]


def numbers_file(numbers: Mapping[str, Any]) -> dict[str, str]:
    """The result file with plain numbers by name."""
    return {NUMBERS: json.dumps(numbers, indent=1) + "\n"}


@dataclass(frozen=True)
class Result(Generic[R]):
    """A finished run: what was done, its numbers, and where they come from."""

    run: R
    numbers: Mapping[str, Any]
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder[R]) -> Result[R]:
        """The result in a folder of a finished run."""
        numbers, environment = (read_json(folder.path / name) for name in (NUMBERS, ENVIRONMENT))
        return cls(folder.run, numbers, environment)


def _method(name: str) -> str:
    return str(_HERE / "methods" / f"{name}.toml")


def description_of(method: str) -> str:
    """Settings of a method that the paper does not state."""
    return catalogue.load("method", _method(method)).description


def runs_of(
    figure: str, methods: Sequence[str], seeds: Sequence[int], settings: Mapping[str, Any]
) -> list[Any]:
    """The runs of a figure, from the TOMLs beside this file.

    Raises:
        UserError: a key is unknown or a value impossible.
    """
    paths = [_method(method) for method in methods]
    return planning.plan(str(_HERE / f"{figure}.toml"), paths, seeds, settings)


def results_of(figure: str, methods: Sequence[str], setting: Setting) -> list[Result[Any]]:
    """Run the unfinished runs of a figure; return the results of all finished ones.

    Raises:
        UserError: a setting or the data are wrong, or no run could be finished.
    """
    quick = {"data.dataset": "digits", "epochs": 2} if setting.quick else {}
    runs = runs_of(
        figure,
        [method for method in methods if method in (setting.methods or methods)],
        range(setting.seed, setting.seed + (1 if setting.quick else setting.seeds)),
        {**quick, **setting.settings},
    )
    context = RunContext(setting.out, setting.data_dir, setting.device, command=setting.command)
    faults = [end for end in perform(runs, context, setting.jobs) if end.fault is not None]
    for end in faults:
        print(f"reports: {end.run.label}: {end.fault}", file=sys.stderr)
    finished = [folder for run in runs if (folder := RunFolder(context.out, run)).finished()]
    if not finished:
        raise UserError(f"{figure}: no run was finished; the first: {faults[0].fault}")
    return [Result.of(folder) for folder in finished]


def minutes(results: Sequence[Result[Any]]) -> str:
    """Minutes of all trainings, and their device."""
    environments = [result.environment for result in results]
    total = sum(where["seconds"] for where in environments) / 60
    return f"{total:.1f} minutes in all on {environment.distinct(environments, 'device')}"
