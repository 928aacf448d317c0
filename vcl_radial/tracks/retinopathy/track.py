"""Fundus photographs: a step is an epoch, and its score is the validation AUC."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vcl_radial.data.backbones import LITE0
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.track import Cost, Objective, Track
from vcl_radial.runs.training import Step, Training
from vcl_radial.tracks.retinopathy.settings import VALIDATION, DataSettings, Run
from vcl_radial.tracks.sets import taken_sets

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.data.fundus import FundusData
    from vcl_radial.methods.base import Method
    from vcl_radial.models.model import Model
    from vcl_radial.reporting.blocks import Section
    from vcl_radial.runs.track import FinishedRun
    from vcl_radial.tracks.retinopathy.prepare import Prepared


class Retinopathy(Track[Run]):
    """Photographs, of which the least certain ones are referred to an expert."""

    spec = Run
    methods = ("radial-vcl", "gaussian-vcl")
    step = "epoch"
    objectives: ClassVar = {
        "validation_auc": Objective("maximize", "validation AUC (%)"),
        "validation_accuracy": Objective("maximize", "validation accuracy (%)"),
        "validation_nll": Objective("minimize", "validation NLL (nats)"),
    }
    worker_modules = (
        "vcl_radial.runs.attempt",
        "vcl_radial.tracks.retinopathy.track",
        "vcl_radial.tracks.retinopathy.execute",
    )
    variant_keys = ("dataset",)
    uses_all_cores = True
    has_peers = True

    def variants(
        self, tables: Mapping[str, Any], benchmark: Path | None = None
    ) -> list[Mapping[str, Any]]:
        """A run for each data set of `data.sets`, scored on the others as well."""
        data = dict(tables["data"])
        sets = taken_sets(data, tables["benchmark"], ["aptos", "idrid"], ("dataset", "then"))
        if sets is None:
            return [tables]
        further = data.pop("shifted", [])
        variants: list[Mapping[str, Any]] = []
        for dataset in sets:
            shifted = [*(name for name in sets if name != dataset), *further]
            variants.append({**tables, "data": {**data, "dataset": dataset, "shifted": shifted}})
        return variants

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Make each method, decode the photographs for all runs, and print their number."""
        from vcl_radial.data.decoding import print_progress
        from vcl_radial.tracks.methods import check_made
        from vcl_radial.tracks.retinopathy.prepare import check_drawn, counts, cut, load
        from vcl_radial.tracks.retinopathy.training import method_of
        from vcl_radial.tracks.retinopathy.updating import check_update

        for run in runs:
            if run.updates:
                check_update(run, data_dir)
        runs = [run for run in runs if not run.updates]

        def make(run: Run) -> Method:
            few = min(2, run.recipe.channels)  # a group of one weight has no direction
            return method_of(run.recipe.model_copy(update={"channels": few}), run.data.size)

        check_made(runs, make)
        report_once = cache(print_progress)  # several runs may read one table of labels
        # Reported once for all seeds of a split, as its parts have the same sizes and grades.
        for run in {_key_without_seed(run.needed): run for run in runs}.values():
            check_drawn(run.needed)
            rest = "test on" if run.evaluate_on == "test" else "leave alone"
            for name, _, split in cut(run.needed, load(run.needed, data_dir, report_once)):
                print(counts(name, split, rest), flush=True)

    def open(self, run: Run, context: RunContext, report: Callable[[Step], None]) -> Training:
        """Open a run at its start."""
        from vcl_radial.tracks.retinopathy.execute import EpochTraining

        if run.updates:
            from vcl_radial.tracks.retinopathy.updating import UpdatedTraining

            return UpdatedTraining(run, context.data_dir, context.device, context.peers)
        sites = _prepared(run.needed.model_dump_json(), context.data_dir)
        if run.recipe.network == LITE0:
            sites = _with_features(run.needed.model_dump_json(), context.data_dir)
        return EpochTraining(run, sites, context.device, context.peers)

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """Read `scores` and `calibration`."""
        from vcl_radial.tracks.retinopathy.sections import read

        return read(path, environment)

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """Scores after sites, by part, uncertainty and share referred, with errors over patients.

        The task is the site of a part; its validation part counts as well.
        """
        table, sites = run.tables["scores"], run.environment["sites"]
        numbers = {site: number for number, site in enumerate(sites, start=1)}
        site_of_part = table["part"].str.removesuffix(f" {VALIDATION}")
        after, task = table["after"].map(numbers), site_of_part.map(numbers).fillna(0).astype(int)
        return table.assign(after=after, task=task).rename(
            columns={"standard_error": "error_within"}
        )

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """Each test set, sites in sequence, what uncertainty finds, the most and least certain."""
        from vcl_radial.tracks.retinopathy.sections import sections

        return sections(runs, data_dir)

    def evidence(self, runs: Sequence[FinishedRun]) -> Mapping[str, str]:
        """The predictions of all runs, by patient number and without names of photographs."""
        from vcl_radial.tracks.retinopathy.sections import evidence

        return evidence(runs)

    def scores_so_far(self, folder: RunFolder[Run]) -> dict[int, float]:
        """The validation AUC of the weights that would be kept, after each epoch of the run."""
        from vcl_radial.tracks.retinopathy.execute import history_so_far, selected_score_by_epoch

        return selected_score_by_epoch(folder.run, history_so_far(folder))

    def score(self, folder: RunFolder[Run], objective: str) -> float | None:
        """The score of the weights that the recipe selects, by default the last epoch's weights."""
        from vcl_radial.tracks.retinopathy.scoring import validation_scores

        return validation_scores(folder.path)[objective]

    def chance(self, folder: RunFolder[Run]) -> float | None:
        """The chance level, an AUC of 50 %."""
        return 50.0

    def costs(
        self, groups: Sequence[Sequence[Run]], data_dir: Path | None, device: str
    ) -> Iterable[Cost]:
        """Photographs, cache, steps, memory and time, from one step on one photograph."""
        from vcl_radial.tracks.retinopathy.costs import costs

        return costs([group[0] for group in groups], data_dir, device)

    def kept_model(self, training: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The method after the last site."""
        from vcl_radial.tracks.retinopathy.models import kept

        return kept(training)

    def restored_model(self, run: Run, card: Mapping[str, Any], state: dict[str, Any]) -> Model:
        """The method as it was kept."""
        from vcl_radial.tracks.retinopathy.models import restored

        return restored(run, card, state)

    def new_task(self, model: Model, data: Path) -> str:
        """The checksum of the photographs' names, labels and sizes."""
        from vcl_radial.tracks.retinopathy.updating import new_task

        return new_task(self.validated(model.card["spec"]), data)

    def epochs(self, run: Run) -> int:
        """Epochs of one site; the number of sites follows from the photographs."""
        return run.recipe.epochs


def _key_without_seed(needed: DataSettings) -> str:
    """A key of the photographs to read, the same for all seeds of a split."""
    return needed.model_copy(update={"split_seed": None}).model_dump_json()


@lru_cache(maxsize=1)  # a process trains many runs on the same photographs
def _loaded(photographs: str, data_dir: Path | None) -> Mapping[str, FundusData]:
    """Load the photographs; faults are not reported again after `check_data`."""
    from vcl_radial.tracks.retinopathy.prepare import load

    settings = DataSettings.model_validate_json(photographs)
    return load(settings, data_dir, report=lambda line: None)


@lru_cache(maxsize=1)  # runs of one seed follow one another
def _prepared(needed: str, data_dir: Path | None) -> Sequence[Prepared]:
    from vcl_radial.tracks.retinopathy.prepare import prepare

    settings = DataSettings.model_validate_json(needed)
    loaded = _loaded(_key_without_seed(settings), data_dir)
    return prepare(settings, loaded=loaded)


@lru_cache(maxsize=1)
def _with_features(needed: str, data_dir: Path | None) -> Sequence[Prepared]:
    from vcl_radial.tracks.retinopathy.prepare import with_features

    return with_features(_prepared(needed, data_dir))


TRACK = Retinopathy
