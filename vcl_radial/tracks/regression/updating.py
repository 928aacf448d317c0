"""A kept model of a table learns further rows, with its posterior as their prior."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from vcl_radial.data.data_files import files_checksum
from vcl_radial.data.further_rows import load_further_rows
from vcl_radial.data.tables import RegressionData
from vcl_radial.errors import DataError, UserError
from vcl_radial.files import reading
from vcl_radial.methods.tasks import check_inputs
from vcl_radial.models.arrays import check_scale
from vcl_radial.models.table import TableModel
from vcl_radial.runs.training import Step
from vcl_radial.runs.updating import parent_of
from vcl_radial.tracks.regression import files
from vcl_radial.tracks.regression.data import Standardiser
from vcl_radial.tracks.regression.execute import TableRuns, load_data_once
from vcl_radial.tracks.regression.scores import Scores
from vcl_radial.tracks.regression.settings import Run
from vcl_radial.tracks.regression.splits import LaneSplits
from vcl_radial.training.lane_data import LaneData


class UpdatedSplits:
    """Further rows as the next slice of a model, and the test rows of its split.

    Args:
        scaler: the standardiser of the model.
        x: raw inputs `[n, d]`.
        y: targets `[n]`.
        of_parent: the split of the model, for the rows that score it.
        learnt: number of slices that the model has learnt.
    """

    def __init__(
        self, scaler: Standardiser, x: Tensor, y: Tensor, of_parent: LaneSplits, learnt: int
    ) -> None:
        self.scalers, self.y_scale = [scaler], scaler.y_scale[None]
        self.train = LaneData.of([(scaler.inputs(x), scaler.targets(y))])
        check_inputs(self.train.x[0], "the new rows, standardised,")
        self.test, self.held_out, self._learnt = of_parent.test, of_parent.held_out, learnt

    def in_slices(self, count: int | None) -> list[LaneData]:
        """The new rows as the last slice; the earlier ones are not trained again."""
        return [self.train] * (self._learnt + 1)


def updated_runs(run: Run, data_dir: Path | None, report: Callable[[int, Step], None]) -> TableRuns:
    """The run of an update at its start, as the only one of its program.

    Raises:
        UserError: the parent is not the model that the run continues.
        DataError: the new rows have changed or do not fit, or the table's test rows are not there.
    """
    assert run.updates
    link = run.updates[-1]
    card, state = parent_of(run)
    x, y = new_rows(card, Path(link.data), link.checksum)
    scaler, learnt = Standardiser(**state["standardiser"]), len(card["tasks"])
    splits = UpdatedSplits(scaler, x, y, _splits(run, data_dir), learnt)
    columns = tuple((name, texts and tuple(texts)) for name, texts in card["columns"])
    table = RegressionData(
        run.data.name, x, y, (), card["hidden"][0], columns=columns, target=card["target"]
    )
    together = TableRuns([run], table, report, splits)
    (training,) = together.lanes
    training.learner.load_state_dict(0, state["learner"])
    training.after = _scores(Path(link.folder))
    training.earlier = [task["name"] for task in card["tasks"]]
    return together


def new_task(model: TableModel, run: Run, path: Path) -> str:
    """The checksum of further rows.

    Raises:
        UserError: the model was trained as a lane that carries no posterior.
        DataError: the rows are missing, damaged or do not fit the model.
    """
    lane = run.recipe.lane
    if run.is_lane and lane is not None and not lane.carried:
        raise UserError(
            f"{run.method} carries no posterior where its splits train as one program: run it with "
            "--set data.slices=1"
        )
    x, y = new_rows(model.card, path)
    try:
        model.inputs(x)
        check_scale(model.targets(y), "y")
    except DataError as error:
        raise DataError(str(error), at=path) from None
    return files_checksum([path])


def new_rows(
    card: Mapping[str, Any], path: Path, checksum: str | None = None
) -> tuple[Tensor, Tensor]:
    """Raw inputs `[n, d]` and targets `[n]`, which may have to have a checksum.

    Raises:
        DataError: the rows are missing, damaged or changed, or do not fit the model.
    """
    x, y = load_further_rows(path, card)
    if y is None:
        target = "array 'y'" if path.suffix == ".npz" else f"column {card['target']!r}"
        raise DataError(f"has no {target}, from which the model learns", at=path)
    if checksum is not None and files_checksum([path]) != checksum:
        raise DataError("has changed since the update began; give the command again", at=path)
    return x, y


def _splits(run: Run, data_dir: Path | None) -> LaneSplits:
    """The split of the model, whose rows score it."""
    try:
        changed = files.checksum(run.data, data_dir) != run.data.checksum
        table = load_data_once(run.data, data_dir)
    except UserError as error:
        raise DataError(f"the model is scored on the test rows of its table, and {error}") from None
    if changed:
        raise DataError("has changed since the model was trained on it", at=run.data.name)
    validation = run.data.validation if run.evaluate_on == "validation" else None
    return LaneSplits(table, [run.seed], validation, run.data.held_out)


def _scores(folder: Path) -> dict[int, Scores]:
    """The scores of a finished run by slice; all rows at once are the first one."""
    after: dict[int, Scores] = {}
    file = folder / "scores.csv"
    with reading.data_errors(file):
        for row in csv.DictReader(reading.read_text(file).splitlines()):
            scores = after.setdefault(int(row["slice"]) or 1, {})
            scores[row["metric"]] = float(row["value"])
    return after
