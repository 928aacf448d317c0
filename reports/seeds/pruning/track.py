"""The tracks of networks that are trained, pruned and scored, and the results of their runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import torch

from reports.seeds.pruning.lenet.training import LeNetTraining, load_images
from reports.seeds.pruning.mlp.training import MLPTraining, load_stream
from reports.seeds.pruning.settings import NUMBERS, LeNetSpec, MLPSpec, PruningSpec
from vcl_radial.errors import DataError, UserError
from vcl_radial.files.reading import read_json
from vcl_radial.reporting.blocks import Section, Table, Text
from vcl_radial.runs import catalogue, environment, planning
from vcl_radial.runs.command import perform_command
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import ENVIRONMENT, RunFolder
from vcl_radial.runs.track import Objective, Track
from vcl_radial.runs.training import Step

if TYPE_CHECKING:
    from reports.papers.analysis import Setting
    from vcl_radial.runs.track import FinishedRun
    from vcl_radial.runs.training import Training

_HERE = Path(__file__).parent


class Pruning(Track[PruningSpec]):
    """One network after another, trained, pruned and scored.

    Attributes:
        load: function of the table `data`, the data folder and a device; returns the images.
        training: class that is made of a run, its images and a function that reports progress.
    """

    methods = ()
    step = "epoch"
    objectives: ClassVar = {
        "validation_error": Objective("minimize", "validation error (%)"),
    }
    worker_modules: ClassVar[Sequence[str]] = ("vcl_radial.runs.attempt", __name__)
    has_scores_between = False
    load: ClassVar[Callable[..., Any]]
    training: ClassVar[Callable[..., Training]]

    def check_data(self, runs: Sequence[PruningSpec], data_dir: Path | None) -> None:
        """Load the images."""
        self.load(runs[0].data, data_dir, torch.device("cpu"))

    def open(
        self, run: PruningSpec, context: RunContext, report: Callable[[Step], None]
    ) -> Training:
        """A network at its start."""
        data = self.load(run.data, context.data_dir, torch.device(context.device))
        return self.training(run, data, report)

    def score(self, folder: RunFolder[PruningSpec], objective: str) -> float | None:
        """The score of the pruned network, if there are validation images."""
        value = Result.of(folder).numbers.get(objective)
        return None if value is None else float(value)

    def epochs(self, run: PruningSpec) -> int:
        """Number of epochs in the recipe."""
        return int(run.recipe.epochs)

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """`numbers`: the single ones, by name."""
        try:
            numbers = read_json(path / NUMBERS)
        except (OSError, ValueError) as error:
            raise DataError(f"{NUMBERS} cannot be read: {error}") from None
        single = {name: [value] for name, value in numbers.items() if not isinstance(value, dict)}
        return {"numbers": pd.DataFrame(single)}

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """A table of the numbers of every run."""
        origins = [(run.method, run.spec.seed) for run in runs]
        tables = pd.concat([run.tables["numbers"].astype(object) for run in runs]).fillna("–")
        rows = [[*origin, *row] for origin, row in zip(origins, tables.to_numpy(), strict=True)]
        table = Table(["method", "seed", *tables], [list(map(str, row)) for row in rows])
        page = Text(
            f"python -m reports {runs[0].spec.benchmark} compares such runs with the paper."
        )
        return [Section("Numbers", [table, page])]


class LeNetPruning(Pruning):
    """LeNet-5 pruned by the radii of its rows and columns (RDP, Table 2)."""

    spec = LeNetSpec
    load = staticmethod(load_images)
    training = LeNetTraining


class MLPPruning(Pruning):
    """An MLP pruned by the signal-to-noise ratio of its weights (BAdam, Fig. 2)."""

    spec = MLPSpec
    load = staticmethod(load_stream)
    training = MLPTraining


@dataclass(frozen=True)
class Result:
    """A finished run: what was done, its numbers, and where they come from."""

    run: Any
    numbers: Mapping[str, Any]
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder[Any]) -> Result:
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


def results_of(figure: str, methods: Sequence[str], setting: Setting) -> list[Result]:
    """Run the unfinished runs of a figure; return the results of all finished ones.

    Raises:
        UserError: a setting or the data are wrong, or no run could be finished.
    """
    quick = {"data.dataset": "digits", "epochs": 2} if setting.quick else {}
    done = perform_command(
        str(_HERE / f"{figure}.toml"),
        [_method(method) for method in methods if method in (setting.methods or methods)],
        range(setting.seed, setting.seed + (1 if setting.quick else setting.seeds)),
        {**quick, **setting.settings},
        out=setting.out,
        jobs=setting.jobs,
        device=setting.device,
        data_dir=setting.data_dir,
    )
    for end in done.failures:
        print(f"reports: {end.run.label}: {end.fault}", file=sys.stderr)
    folders = [RunFolder(setting.out, run) for run in done.runs]
    finished = [folder for folder in folders if folder.finished()]
    if not finished:
        raise UserError(f"{figure}: no run was finished; the first: {done.failures[0].fault}")
    return [Result.of(folder) for folder in finished]


def minutes(results: Sequence[Result]) -> str:
    """Minutes of all trainings, and their device."""
    environments = [result.environment for result in results]
    total = sum(entry["seconds"] for entry in environments) / 60
    return f"{total:.1f} minutes in all on {environment.distinct(environments, 'device')}"
