"""Tables of finished runs on task sequences: scores, layers and costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.config.ranges import CountOrZero
from vcl_radial.errors import DataError
from vcl_radial.metrics import summary
from vcl_radial.metrics.continual import TIDY_COLUMNS
from vcl_radial.reporting.gather import checked
from vcl_radial.reporting.scores import AVALANCHE
from vcl_radial.reporting.stored import stored_table
from vcl_radial.runs.finished import Seconds, Written
from vcl_radial.runs.track import FinishedRun
from vcl_radial.tracks.continual import avalanche_metrics

if TYPE_CHECKING:
    import pandas as pd

_TYPES = {"task_trained": int, "task_evaluated": int, "metric": str, "value": float}
_MOVEMENT = ("kl", "moved", "noise", "noise_to_prior", "units_at_rest")
_LAYER_TYPES = {"task_trained": int, "layer": str, **dict.fromkeys(_MOVEMENT, float)}
COLUMNS, LAYER_COLUMNS = [*_TYPES], [*_LAYER_TYPES]


class _Environment(Written):
    """The keys of `environment.json` for a task sequence; None if unknown."""

    tasks: list[str]
    seconds: dict[str, Seconds]
    parameters: CountOrZero | None = None
    carried_bytes: CountOrZero | None = None


def read(path: Path, environment: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Read `accuracy`, and, where a run has them, `layers` and `avalanche`, from its folder.

    Raises:
        DataError: a table is damaged or has gaps; the message names the file.
    """
    try:
        tasks = len(checked(_Environment, environment).tasks)
    except DataError as error:
        raise DataError(str(error), "environment.json") from None
    tables = {"accuracy": stored_table(path / "accuracy.csv", _TYPES, _TYPES)}
    _check(tables["accuracy"], tasks)
    if (path / "layers.csv").exists():
        tables["layers"] = stored_table(path / "layers.csv", _LAYER_TYPES, _LAYER_TYPES)
    if (file := path / avalanche_metrics.FILE).exists():
        types = avalanche_metrics.TYPES
        tables["avalanche"] = stored_table(file, types, types)
    return tables


def scores(stored: pd.DataFrame) -> pd.DataFrame:
    """The stored table `accuracy.csv` with the names of the table of scores."""
    return stored.rename(columns=dict(zip(COLUMNS, TIDY_COLUMNS, strict=True)))


def all_scores(run: FinishedRun) -> pd.DataFrame:
    """The scores of a run, and the values of Avalanche's metrics if it has some."""
    import pandas as pd

    own = scores(run.tables["accuracy"])
    if "avalanche" not in run.tables:
        return own
    values = run.tables["avalanche"].rename(columns={"task_trained": "after"})
    part = run.spec.evaluate_on
    return pd.concat(
        [own.assign(part=part), values.assign(task=0, part=AVALANCHE)], ignore_index=True
    )


def _check(accuracy: pd.DataFrame, tasks: int) -> None:
    """Check that every task is scored after every task.

    Raises:
        DataError: a score is missing or there twice.
    """
    # This is checked first: `summary` allocates a matrix for all tasks that the table names.
    if set(accuracy["task_evaluated"]) != set(range(1, tasks + 1)):
        fault = f"does not hold the {tasks} tasks of environment.json"
        raise DataError(fault, "accuracy.csv")
    if not accuracy["task_trained"].isin(range(tasks + 1)).all():
        raise DataError(f"holds a task_trained that is not from 0 to {tasks}", "accuracy.csv")
    try:
        summary(scores(accuracy))
    except DataError as error:
        raise DataError(str(error), "accuracy.csv") from None
