"""Tables of finished runs on task sequences: scores, layers and costs."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcl_radial.config.ranges import CountOrZero
from vcl_radial.errors import DataError
from vcl_radial.files.reading import read_text
from vcl_radial.metrics import summary
from vcl_radial.metrics.continual import TIDY_COLUMNS
from vcl_radial.reporting.gather import checked
from vcl_radial.runs.finished import Seconds, Written
from vcl_radial.runs.track import FinishedRun

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["task_trained", "task_evaluated", "metric", "value"]
LAYER_COLUMNS = [
    "task_trained",
    *("layer", "kl", "moved", "noise", "noise_to_prior", "units_at_rest"),
]
_LARGEST = 1e150
"""A standard error takes squares, and squares of larger numbers overflow; float32 ends far
below."""


class _Environment(Written):
    """The keys of `environment.json` for a task sequence; None if unknown."""

    tasks: list[str]
    seconds: dict[str, Seconds]
    parameters: CountOrZero | None = None
    carried_bytes: CountOrZero | None = None


def read(path: Path, environment: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Read `accuracy`, and `layers` of a method with a posterior, from a run's folder.

    Raises:
        DataError: a table is damaged or has gaps; the message names the file.
    """
    tasks = len(_named("environment.json", lambda: checked(_Environment, environment)).tasks)
    tables = {"accuracy": _named("accuracy.csv", lambda: _scores(path / "accuracy.csv", tasks))}
    if (path / "layers.csv").exists():
        tables["layers"] = _named("layers.csv", lambda: _layers(path / "layers.csv", tasks))
    return tables


def scores(stored: pd.DataFrame) -> pd.DataFrame:
    """The stored table `accuracy.csv` with the names of the table of scores."""
    return stored.rename(columns=dict(zip(COLUMNS, TIDY_COLUMNS, strict=True)))


def layers_table(runs: Sequence[FinishedRun]) -> pd.DataFrame | None:
    """`benchmark, method, seed` and the columns of layers.csv; None if no run has one."""
    import pandas as pd

    named = [
        run.tables["layers"].assign(benchmark=run.benchmark, method=run.method, seed=run.spec.seed)
        for run in runs
        if "layers" in run.tables
    ]
    columns = ["benchmark", "method", "seed", *LAYER_COLUMNS]
    return pd.concat(named, ignore_index=True)[columns] if named else None


def _named(file: str, content: Callable[[], Any]) -> Any:
    """Return a file's content; an error names the file."""
    try:
        return content()
    except (OSError, ValueError, LookupError, TypeError, DataError) as error:
        raise DataError(str(error), file) from None


def _scores(path: Path, tasks: int) -> pd.DataFrame:
    import pandas as pd

    tidy = pd.read_csv(io.StringIO(read_text(path)))
    if list(tidy.columns) != COLUMNS:
        raise DataError(f"it has the columns {', '.join(map(str, tidy.columns))}")
    # This is checked first: `summary` allocates a matrix for all tasks that the table names.
    evaluated = tidy["task_evaluated"].max()
    if evaluated != tasks:
        raise DataError(f"it holds {evaluated} tasks, and environment.json names {tasks}")
    if not tidy["task_trained"].isin(range(tasks + 1)).all():
        raise DataError(f"it holds a task_trained that is not from 0 to {tasks}")
    if tidy["value"].isna().any():
        raise DataError("it holds a value that is not a number")
    # Only an NLL can be infinite: a label may have the probability 0.
    _check_size(tidy.loc[(tidy["metric"] != "nll") | (tidy["value"] != math.inf), "value"])
    accuracies = tidy.loc[tidy["metric"] == "accuracy", "value"]
    if not accuracies.between(0.0, 100.0).all():
        raise DataError("it holds an accuracy that is not between 0 and 100 %")
    summary(scores(tidy))
    return tidy


def _check_size(values: pd.Series[float]) -> None:
    """Reject numbers whose mean and standard error cannot be computed."""
    too_large = values[values.abs() > _LARGEST]
    if not too_large.empty:
        raise DataError(f"it holds the {values.name} {too_large.iloc[0]:g}, which no run gives")


def _layers(path: Path, tasks: int) -> pd.DataFrame:
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    table = pd.read_csv(io.StringIO(read_text(path)), dtype={"layer": str})
    if list(table.columns) != LAYER_COLUMNS:
        raise DataError(f"it has the columns {', '.join(map(str, table.columns))}")
    if not table["task_trained"].isin(range(1, tasks + 1)).all():
        raise DataError(f"it holds a task_trained that is not a task from 1 to {tasks}")
    if table["layer"].isna().any():
        raise DataError("it holds a row without a layer")
    for name in LAYER_COLUMNS[2:]:
        if not is_numeric_dtype(table[name]):
            raise DataError(f"it holds a {name} that is not a number")
        # A noise that has shrunk to 0 makes a KL or a ratio infinite, or nan, which is written as
        # an empty cell: the run's scores are still valid.
        _check_size(table.loc[table[name] != math.inf, name])
        if name not in ("kl", "units_at_rest") and (table[name] < 0).any():
            raise DataError(f"it holds a {name} that is negative")
    if not table["units_at_rest"].between(0, 100).all():
        raise DataError("it holds units_at_rest that are not between 0 and 100 %")
    return table
