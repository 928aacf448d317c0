"""Regression tables: a seed is a split, and splits of one shape train as one program."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vcl_radial.data.named_files import file_path
from vcl_radial.files.reading import read_text
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.track import Cost, Track, objectives
from vcl_radial.runs.training import Lanes, Step, Training
from vcl_radial.tracks.regression import files
from vcl_radial.tracks.regression.settings import Recipe, Run, table_name
from vcl_radial.tracks.sets import taken_sets

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.data.tables import RegressionData
    from vcl_radial.methods.base import Method
    from vcl_radial.models.table import TableModel
    from vcl_radial.reporting.blocks import Section
    from vcl_radial.runs.track import FinishedRun


class Regression(Track[Run]):
    """Tables of numbers, all rows at once or in slices of input space."""

    spec = Run
    methods = ("gaussian-vcl", "radial-vcl")
    variant_keys = ("set", "table", "target", "splits", "slices")
    step = "split"
    objectives: ClassVar = objectives("rows")
    worker_modules = ("vcl_radial.runs.attempt", "vcl_radial.tracks.regression.execute")
    has_lanes = True
    lanes = 40
    counts = "steps"
    has_scores_between = False
    devices = ("cpu",)

    def variants(
        self, tables: Mapping[str, Any], benchmark: Path | None = None
    ) -> list[Mapping[str, Any]]:
        """One run per set; with slices, one run in slices and one run on all rows at once.

        A published set without a split of this number is left out, if other sets have one.
        """
        data, name, seed = dict(tables["data"]), tables["benchmark"], tables["seed"]
        sets = taken_sets(data, name, ["yacht", "energy"], ("set", "table"))
        if sets is not None:
            with_split = [s for s in sets if seed < files.PUBLISHED_SPLITS.get(s, seed + 1)]
            data_tables = [{**data, "set": name} for name in with_split or sets]
        else:
            if isinstance(data.get("table"), str):
                data["table"] = str(file_path(data["table"], benchmark))
                data.setdefault("splits", files.TABLE_SPLITS)
            data_tables = [data]
        return [
            {**tables, "data": chosen, "recipe": recipe}
            for table in data_tables
            for chosen, recipe in _with_all_at_once(table, tables["recipe"])
        ]

    def selection_unit(self, tables: Mapping[str, Any]) -> str:
        """The set and the split."""
        return f"{table_name(tables['data'])}-{tables['seed']}"

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Load each table, report its rows, and make each method for it once."""
        from vcl_radial.data.decoding import print_progress
        from vcl_radial.tracks.methods import check_made
        from vcl_radial.tracks.regression.execute import check_data

        for run in runs:
            if run.updates:
                self.open(run, RunContext(Path(), data_dir), lambda step: None)
        runs = [run for run in runs if not run.updates]
        report_once = cache(print_progress)  # slices of a table, and all its rows, are one table
        for data in dict.fromkeys(run.data for run in runs):
            group = [run for run in runs if run.data == data]
            table = check_data(data, data_dir, [run.seed for run in group])
            if table.summary:
                report_once(f"{data.table}: {table.summary}")
            # Only in lanes does an RDP body have a Gaussian head.
            buildable = [r for r in group if not (r.is_lane and r.recipe.strategy == "rdp_vcl")]
            check_made(buildable, partial(_method, table=table))

    def batches(self, runs: Sequence[Run], lanes: int) -> list[list[Run]]:
        """Group runs by table and shape, longest first: no worker ends with a long batch."""
        groups: dict[str, list[Run]] = {}
        for run in runs:
            if run.is_lane:
                groups.setdefault(run.shape(), []).append(run)
        batches = [g[at : at + lanes] for g in groups.values() for at in range(0, len(g), lanes)]
        batches += [[run] for run in runs if not run.is_lane]
        return sorted(batches, key=_cost, reverse=True)

    def open(self, run: Run, context: RunContext, report: Callable[[Step], None]) -> Training:
        """Open a run at its start."""
        return self.open_together([run], context, lambda lane, step: report(step)).lanes[0]

    def open_together(
        self, runs: Sequence[Run], context: RunContext, report: Callable[[int, Step], None]
    ) -> Lanes:
        """Open a batch at its start."""
        from vcl_radial.tracks.regression.execute import TableRuns, load_data_once

        if runs[0].updates:
            from vcl_radial.tracks.regression.updating import updated_runs

            return updated_runs(runs[0], context.data_dir, report)
        return TableRuns(runs, load_data_once(runs[0].data, context.data_dir), report)

    def kept_model(self, training: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The method after the last slice."""
        from vcl_radial.tracks.regression.models import kept

        return kept(training)

    def restored_model(
        self, run: Run, card: Mapping[str, Any], state: dict[str, Any]
    ) -> TableModel:
        """The method as it was kept."""
        from vcl_radial.tracks.regression.models import restored

        return restored(run, card, state)

    def new_task(self, model: TableModel, data: Path) -> str:
        """The checksum of the file of further rows."""
        from vcl_radial.tracks.regression.updating import new_task

        return new_task(model, self.validated(model.card["spec"]), data)

    def score(self, folder: RunFolder[Run], objective: str) -> float | None:
        """The score on all evaluated rows; in a sequence, after the last slice."""
        rows = csv.DictReader(read_text(folder.path / "scores.csv").splitlines())
        return [float(row["value"]) for row in rows if row["metric"] == objective][-1]

    def epochs(self, run: Run) -> int:
        """The steps of Adam."""
        return run.steps

    def costs(
        self, groups: Sequence[Sequence[Run]], data_dir: Path | None, device: str
    ) -> Iterable[Cost]:
        """Steps, time, memory and model of a run, from a few steps."""
        from vcl_radial.tracks.regression.costs import costs

        return costs(groups, data_dir, device, self.lanes)

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """Read `scores`: `slice`, `metric` and `value`."""
        from vcl_radial.reporting.stored import stored_table

        types = {"slice": int, "metric": str, "value": float}
        return {"scores": stored_table(path / "scores.csv", types, types)[[*types]]}

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """Scores on a set, the part, after numbers of slices; 0 stands for all rows at once."""
        table = run.tables["scores"].rename(columns={"slice": "after"})
        return table.assign(part=table_name(run.spec.data))

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """All sets together: scores, published scores, and chosen settings."""
        from vcl_radial.tracks.regression.sections import report

        return report(runs)


def _method(run: Run, table: RegressionData) -> Method:
    """The method of a run, as it is made for its table."""
    from vcl_radial.tracks.regression.task_by_task import method_of

    return method_of(run.recipe, table.x.shape[1], run.recipe.hidden or [table.hidden])


def _with_all_at_once(
    data: Mapping[str, Any], recipe: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Data and recipe; for a sequence also all rows at once, with the same total of steps."""
    slices, steps = data.get("slices"), recipe.get("steps", Recipe.model_fields["steps"].default)
    if not isinstance(slices, int) or not isinstance(steps, int) or slices < 2:
        return [(data, recipe)]
    return [(data, recipe), ({**data, "slices": 1}, {**recipe, "steps": steps * slices})]


def _cost(batch: Sequence[Run]) -> float:
    """Estimate the cost of a batch in units of a step's fixed cost."""
    recipe, lane = batch[0].recipe, batch[0].recipe.lane
    step = lane.step_cost if lane is not None and batch[0].is_lane else 6.0
    networks = len(batch) * recipe.options.get("members", 1)
    rows = networks * recipe.batch_size * recipe.train_samples
    return batch[0].steps * (step + rows / 4000) if step else 1.0


TRACK = Regression
