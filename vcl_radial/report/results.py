"""Gathering finished runs from their folders."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vcl_radial.errors import DataError, UserError, visible
from vcl_radial.report.labels import Settings, flat, labels, shipped_classes
from vcl_radial.runs.folder import (
    FAILED,
    failure,
    finished_fault,
    read_spec,
    unfinished,
)
from vcl_radial.tracks.continual.specification import RESULT_FILES

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["task_trained", "task_evaluated", "metric", "value"]
LAYER_COLUMNS = [
    "task_trained",
    *("layer", "kl", "moved", "noise", "noise_to_prior", "units_at_rest"),
]
_LARGEST = 1e150
"""A standard error takes squares, and those of larger numbers overflow; float32 ends far below."""

Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Told(BaseModel):
    """What a report reads of a file; older and newer versions may have written more."""

    model_config = ConfigDict(extra="allow", strict=True)


class Spec(_Told):
    """What a run was."""

    benchmark: Name
    method: Name
    seed: int
    evaluate_on: str
    recipe: dict[str, Any]
    stream: dict[str, Any]
    code: str | None = None


class Environment(_Told):
    """Where a run's numbers came from; None is what an older version did not write down."""

    device: str
    processor: str
    threads: int
    packages: dict[str, str | None]
    tasks: list[str]
    seconds: dict[str, Seconds]
    finished: str
    commit: str | None = None
    parameters: Annotated[int, Field(ge=0)] | None = None
    command: str | None = None


Told = TypeVar("Told", bound=_Told)


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder holds.

    Attributes:
        path: the folder.
        spec: the resolved spec.
        environment: where the numbers came from.
        tidy: the scores, with the columns of accuracy.csv.
        layers: what the layers of the posterior did, with the columns of layers.csv; None of a
            method without one.
        benchmark: its name, with the folder of a user's own data, and with the data it was scored
            on unless these are the test data; where runs of one name differ in their streams, with
            what differs.
        method: its name; where runs of one name differ in their recipes, or in the code of classes
            from outside, with what differs.
    """

    path: Path
    spec: Spec
    environment: Environment
    tidy: pd.DataFrame
    layers: pd.DataFrame | None
    benchmark: str
    method: str

    @property
    def multi_head(self) -> bool:
        """Whether each task has a head of its own."""
        return bool(self.spec.stream.get("heads", "multi") == "multi")


def gather(folder: Path) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs below a folder, by benchmark, method and seed, and what was passed over.

    Raises:
        UserError: the folder is not there or holds no finished run.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder")
    runs: list[FinishedRun] = []
    passed_over: list[str] = []
    first: dict[str, FinishedRun] = {}
    for path in sorted(path for path in folder.glob("**/seed-*") if path.is_dir()):
        try:
            run = _read(path)
        except DataError as error:
            passed_over.append(str(error))
            continue
        twin = first.setdefault(repr(run.spec), run)
        if twin is run:
            runs.append(run)
        else:
            passed_over.append(f"{path}: is the same run as {twin.path}")
    if not runs:
        raise UserError(_nothing_in(folder, passed_over))
    # Other tasks or other data are another measurement, other settings of a recipe or code another
    # method.
    names = labels([_stream_settings(run) for run in runs], "data")
    runs = [replace(run, benchmark=name) for run, name in zip(runs, names, strict=True)]
    names = labels([_recipe_settings(run) for run in runs], "code")
    runs = [replace(run, method=name) for run, name in zip(runs, names, strict=True)]
    return sorted(runs, key=lambda run: (run.benchmark, run.method, run.spec.seed)), passed_over


def _stream_settings(run: FinishedRun) -> Settings:
    stream = flat(run.spec.stream)
    checksum = stream.pop("checksum", None)
    return Settings(run.benchmark, run.benchmark, stream, checksum)


def _recipe_settings(run: FinishedRun) -> Settings:
    group = run.benchmark, run.method
    shipped = shipped_classes(run.spec.method)
    return Settings(group, run.method, flat(run.spec.recipe), run.spec.code, shipped)


def _nothing_in(folder: Path, passed_over: Sequence[str]) -> str:
    whole = folder.resolve()  # its parents are asked for, and "." names none
    if whole.name.startswith("seed-") and _is_of_a_run(whole):
        return f"{folder}: is the folder of one run; give {whole.parent.parent}, its benchmark's"
    words = f"{folder}: holds no finished run; give a folder that was given to --out"
    if not passed_over:
        return words
    more = f", and {len(passed_over) - 1} more" if len(passed_over) > 1 else ""
    return f"{words} (passed over: {passed_over[0]}{more})"


def _read(path: Path) -> FinishedRun:
    """What a run folder holds.

    Raises:
        DataError: it holds no finished run, or what no run of this suite writes.
    """
    fault = finished_fault(path, RESULT_FILES)
    failed = fault == "not finished" and failure(path) is not None
    if not failed and not (path / "spec.toml").exists():
        raise DataError(f"{path}: is not a run folder of this suite (it has no spec.toml)")
    if fault is not None:
        raise DataError(unfinished(path, fault))
    import pandas as pd  # not where nothing is finished

    file = "spec.toml"
    try:
        spec = _told(Spec, read_spec(path))
        file = "environment.json"
        environment = _told(Environment, json.loads((path / file).read_text()))
        file = "accuracy.csv"
        tidy = pd.read_csv(io.StringIO((path / file).read_text()))
        _check_scores(tidy, len(environment.tasks))
        layers = _layers(path / (file := "layers.csv"), len(environment.tasks))
    except (OSError, ValueError, LookupError, TypeError, RecursionError, DataError) as error:
        words = " ".join(str(error).split())
        raise DataError(f"{path}: is not a run folder of this suite ({file}: {words})") from None
    data = spec.stream.get("data_name")
    benchmark = visible(spec.benchmark if data is None else f"{spec.benchmark} on {data}")
    scored_on = "" if spec.evaluate_on == "test" else f" ({spec.evaluate_on} data)"
    names = benchmark + scored_on, visible(spec.method)
    return FinishedRun(path, spec, environment, tidy, layers, *names)


def _is_of_a_run(path: Path) -> bool:
    return any((path / name).exists() for name in ("spec.toml", FAILED))


def _told(kind: type[Told], table: Any) -> Told:
    """A file's content.

    Raises:
        DataError: a key is missing or of another type; it names the key.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        said = "is missing" if fault["type"] == "missing" else f"is wrong: {fault['msg']}"
        raise DataError(f"the key {key!r} {said}" if key else fault["msg"]) from None


def _check_scores(tidy: pd.DataFrame, tasks: int) -> None:
    """Refuse a table that is damaged or has gaps.

    Raises:
        DataError: it is.
    """
    if list(tidy.columns) != COLUMNS:
        raise DataError(f"it has the columns {', '.join(map(str, tidy.columns))}")
    # Asked first: what follows lays out as many tasks as the table names.
    named = tidy["task_evaluated"].max()
    if named != tasks:
        raise DataError(f"it holds {named} tasks, and environment.json names {tasks}")
    if not tidy["task_trained"].isin(range(tasks + 1)).all():
        raise DataError(f"it holds a task_trained that is not from 0 to {tasks}")
    if tidy["value"].isna().any():
        raise DataError("it holds a value that is not a number")
    # A label that a network gives the probability 0 makes its NLL infinite; nothing else is.
    _check_size(tidy.loc[(tidy["metric"] != "nll") | (tidy["value"] != math.inf), "value"])
    accuracies = tidy.loc[tidy["metric"] == "accuracy", "value"]
    if not accuracies.between(0.0, 100.0).all():
        raise DataError("it holds an accuracy that is not between 0 and 100 %")
    from vcl_radial.metrics import summary

    summary(tidy)


def _check_size(values: pd.Series[float]) -> None:
    """Refuse numbers whose mean and standard error cannot be computed."""
    beyond = values[values.abs() > _LARGEST]
    if not beyond.empty:
        raise DataError(f"it holds the {values.name} {beyond.iloc[0]:g}, which no run gives")


def _layers(path: Path, tasks: int) -> pd.DataFrame | None:
    """A run's layers.csv, where there is one.

    Raises:
        DataError: it is damaged.
    """
    if not path.exists():
        return None
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    table = pd.read_csv(io.StringIO(path.read_text()), dtype={"layer": str})
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
        # nothing: the run's scores are as good as any.
        _check_size(table.loc[table[name] != math.inf, name])
        if name not in ("kl", "units_at_rest") and (table[name] < 0).any():
            raise DataError(f"it holds a {name} that is negative")
    if not table["units_at_rest"].between(0, 100).all():
        raise DataError("it holds units_at_rest that are not between 0 and 100 %")
    return table


def results_table(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """One tidy table of many runs: `benchmark, method, seed` and the columns of accuracy.csv."""
    return _put_together(runs, [run.tidy for run in runs], COLUMNS)


def layers_table(runs: Sequence[FinishedRun]) -> pd.DataFrame | None:
    """The same of layers.csv, of those runs that have one; None where none has."""
    carried = [(run, run.layers) for run in runs if run.layers is not None]
    if not carried:
        return None
    chosen, tables = zip(*carried, strict=True)
    return _put_together(chosen, tables, LAYER_COLUMNS)


def _put_together(
    runs: Sequence[FinishedRun], tables: Sequence[pd.DataFrame], columns: Sequence[str]
) -> pd.DataFrame:
    import pandas as pd

    named = [
        table.assign(benchmark=run.benchmark, method=run.method, seed=run.spec.seed)
        for run, table in zip(runs, tables, strict=True)
    ]
    return pd.concat(named, ignore_index=True)[["benchmark", "method", "seed", *columns]]


def runs_costs(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """What runs cost: `benchmark, method, seed`, seconds and parameters; nan where not known."""
    import pandas as pd

    rows = [
        {
            "benchmark": run.benchmark,
            "method": run.method,
            "seed": run.spec.seed,
            "training_seconds": run.environment.seconds.get("training"),
            "evaluation_seconds": run.environment.seconds.get("evaluation"),
            "parameters": run.environment.parameters,
        }
        for run in runs
    ]
    numbers = ("training_seconds", "evaluation_seconds", "parameters")
    return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))


def notices(runs: Sequence[FinishedRun]) -> list[str]:
    """What a reader of the tables of one benchmark has to know of its runs, a line each."""
    named: dict[str, list[FinishedRun]] = {}
    for run in runs:
        named.setdefault(visible(run.spec.method), []).append(run)
    lines = [
        f"the runs of {method} have {count} different settings; they are shown apart, named "
        f"after what differs{_newest_code(of_name)}"
        for method, of_name in named.items()
        if (count := len({run.method for run in of_name})) > 1
    ]
    of_method: dict[str, list[Environment]] = {}
    for run in runs:
        of_method.setdefault(run.method, []).append(run.environment)
    for what, told in (
        ("commits", _commits),
        ("versions of vcl-radial", _versions),
        ("versions of torch", lambda e: {each.packages.get("torch") for each in e}),
    ):
        if mixed := [method for method, e in of_method.items() if len(told(e)) > 1]:
            lines.append(f"runs of several {what} are put together: {', '.join(mixed)}")
    return lines


def _newest_code(runs: Sequence[FinishedRun]) -> str:
    """Which of several versions of a user's files is the newest."""
    dated = [(run.environment.finished, run.spec.code) for run in runs if run.spec.code]
    if len({code for _, code in dated}) < 2:
        return ""
    return f" (the newest code is {max(dated)[1][:6]})"


def _commits(environments: Sequence[Environment]) -> set[str | None]:
    return {each.commit for each in environments}


def _versions(environments: Sequence[Environment]) -> set[str | None]:
    """Those of this package, where commits do not tell all of it: an installed one has none."""
    if None not in _commits(environments):
        return set()
    return {each.packages.get("vcl-radial") for each in environments}
