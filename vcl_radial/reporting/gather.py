"""Gather finished runs of all tracks from their folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import ValidationError

from vcl_radial.config import outside
from vcl_radial.errors import DataError, UserError, visible
from vcl_radial.files.reading import read_json
from vcl_radial.reporting import evidence
from vcl_radial.reporting.labels import LabelParts, flat, labels, shipped_classes
from vcl_radial.runs import tracks
from vcl_radial.runs.finished import Environment, Spec, Written
from vcl_radial.runs.folder import (
    ENVIRONMENT,
    FAILED,
    SPEC,
    failure,
    finished_fault,
    read_spec,
    unfinished,
)
from vcl_radial.runs.track import FinishedRun

Model = TypeVar("Model", bound=Written)


def gather(*folders: Path) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs below folders, by benchmark, method and seed, and lines on skipped runs.

    Raises:
        UserError: a folder is missing or holds no finished run.
    """
    runs: list[FinishedRun] = []
    passed_over: list[str] = []
    first: dict[str, FinishedRun] = {}
    for folder in folders:
        if not folder.is_dir():
            is_file = folder.exists()
            fault = "is a file; give the folder of runs" if is_file else "there is no such folder"
            raise UserError(fault, folder)
        holds_runs = False
        for run in _below(folder):
            if isinstance(run, DataError):
                passed_over.append(str(run))
                continue
            holds_runs = True
            twin = first.setdefault(repr(run.spec), run)
            if twin is run:
                runs.append(run)
            elif not _same_scores(run, twin):
                passed_over.append(f"{run.path}: has other scores than the same run, {twin.path}")
            elif run.path.exists():  # not restored from committed evidence
                passed_over.append(f"{run.path}: is the same run as {twin.path}")
        if not holds_runs:
            raise UserError(_no_runs_fault(folder, passed_over))
    runs = _with_labels(runs)
    return sorted(runs, key=lambda run: (run.benchmark, run.method, run.spec.seed)), passed_over


def _same_scores(run: FinishedRun, other: FinishedRun) -> bool:
    """Whether two runs have the same scores, as far as evidence has their digits."""
    runs = evidence.rounded(run), evidence.rounded(other)
    scores, others = (run.track.scores(run) for run in runs)
    return scores.equals(others)


def read_runs(folders: Sequence[Path]) -> list[FinishedRun]:
    """Read the finished runs in these folders, in order.

    Raises:
        UserError: a folder holds no finished run.
    """
    return _with_labels([_read(folder) for folder in folders])


def _with_labels(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """The runs with names that differ where their settings do.

    Runs on different data get different benchmark names. Runs with different recipes or code get
    different method names.
    """
    names = labels([_data_settings(run) for run in runs], "data")
    runs = [replace(run, benchmark=visible(name)) for run, name in zip(runs, names, strict=True)]
    names = labels(_recipe_settings(runs), "code")
    return [replace(run, method=visible(name)) for run, name in zip(runs, names, strict=True)]


def checked(kind: type[Model], table: Any) -> Model:
    """Validate the content of a file.

    Raises:
        DataError: a key is missing or of another type; the message names the key.
    """
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(str(part) for part in fault["loc"])
        reason = "is missing" if fault["type"] == "missing" else f"is wrong: {fault['msg']}"
        raise DataError(f"the key {key!r} {reason}" if key else fault["msg"]) from None


def notices(runs: Sequence[FinishedRun]) -> list[str]:
    """Lines that a reader of the tables of one benchmark must know about its runs."""
    by_name: dict[str, list[FinishedRun]] = {}
    for run in runs:
        by_name.setdefault(visible(run.spec.method), []).append(run)
    lines = [
        f"the runs of {method} have {count} different settings; they are shown apart, named "
        f"after what differs{_newest_code(group)}"
        for method, group in by_name.items()
        if (count := len({run.method for run in group})) > 1
    ]
    environments: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        environments.setdefault(run.method, []).append(run.environment)
    for noun, values in (
        ("commits", _commits),
        ("versions of vcl-radial", _versions),
        ("versions of torch", lambda runs: {run["packages"].get("torch") for run in runs}),
    ):
        if mixed := [method for method, e in environments.items() if len(values(e)) > 1]:
            lines.append(f"runs of several {noun} are put together: {', '.join(mixed)}")
    return lines


def _variant(run: FinishedRun) -> tuple[str, ...]:
    """The values that distinguish the runs of one benchmark and seed, such as the data set."""
    return tuple(str(run.spec.data.get(key)) for key in run.track.variant_keys)


def _data_settings(run: FinishedRun) -> LabelParts:
    data = flat(run.spec.stream or run.spec.data)
    checksum = data.pop("checksum", None)
    if run.spec.updates:  # other data of the same name, the newest first
        checksum = "".join(str(link.get("checksum")) for link in reversed(run.spec.updates))
    return LabelParts((run.benchmark, *_variant(run)), run.benchmark, data, checksum)


def _recipe_settings(runs: Sequence[FinishedRun]) -> list[LabelParts]:
    groups = [(run.benchmark, run.method, *_variant(run)) for run in runs]
    seeds = Counter((group, run.spec.seed) for group, run in zip(groups, runs, strict=True))
    repeated = {group for (group, _), count in seeds.items() if count > 1}
    settings = []
    for run, group in zip(runs, groups, strict=True):
        # With settings per seed, recipes may differ between the seeds of one method.
        chosen = bool(run.track.variant_keys) and group not in repeated
        recipe = {} if chosen else flat(run.spec.recipe)
        shipped = shipped_classes(run.spec.method)
        settings.append(LabelParts(group, run.method, recipe, run.spec.code, shipped))
    return settings


def _no_runs_fault(folder: Path, passed_over: Sequence[str]) -> str:
    path = folder.resolve()  # the message needs its parents, which "." does not name
    if path.name.startswith("seed-") and _is_run_folder(path):
        return f"{folder}: is the folder of one run; give {path.parent.parent}, its benchmark's"
    fault = f"{folder}: holds no finished run; give a folder that was given to --out"
    if not passed_over:
        return fault
    more = f", and {len(passed_over) - 1} more" if len(passed_over) > 1 else ""
    return f"{fault} (passed over: {passed_over[0]}{more})"


def _below(folder: Path) -> Iterator[FinishedRun | DataError]:
    """Yield the runs of all run folders and of all evidence, or why one cannot be read."""
    unreadable: list[OSError] = []
    levels = [
        (Path(root), names, files)
        for root, names, files in os.walk(folder, onerror=unreadable.append)
    ]
    closed = {Path(error.filename): (error.strerror or "cannot be read") for error in unreadable}
    for path, reason in closed.items():
        yield DataError(f"{reason.lower()}; make it readable, and give the command again", path)
    folders = {root / name for root, names, _ in levels for name in names if name[:5] == "seed-"}
    for path in sorted(folders - closed.keys()):
        try:
            yield _read(path)
        except UserError as error:
            yield DataError(str(error))
    for path in sorted(root for root, _, files in levels if evidence.FILE in files):
        try:
            with TemporaryDirectory() as to:
                for restored, original in evidence.restore(path, Path(to)):
                    yield _content(restored, original)
        except DataError as error:
            yield error


def _read(path: Path) -> FinishedRun:
    """Read a run folder.

    Raises:
        UserError: it holds no finished run, is not a run folder of this suite, or may not be read.
    """
    fault = finished_fault(path, (SPEC, ENVIRONMENT))
    failed = fault == "not finished" and failure(path) is not None
    if not failed and not (path / SPEC).exists():
        raise DataError(f"is not a run folder of this suite (it has no {SPEC})", path)
    if fault is not None:
        raise DataError(unfinished(path, fault))
    return _content(path, path)


def _content(path: Path, original: Path) -> FinishedRun:
    """Read a run from the files in a folder; `original` is the path to report.

    Raises:
        DataError: the files do not belong to a run of this suite, or they name code (`Untrusted`).
    """
    file = f"{SPEC}: "
    try:
        table = read_spec(path)
        spec = checked(Spec, table)
        with outside.named_by(original / SPEC):
            track = tracks.from_tables(table)
        file = f"{ENVIRONMENT}: "
        environment = read_json(path / ENVIRONMENT)
        checked(Environment, environment)
        file = ""  # the error of the track names its file
        tables = track.read(path, environment)
    except outside.Untrusted:
        raise
    except (OSError, ValueError, LookupError, TypeError, RecursionError, UserError) as error:
        reason = " ".join(f"{file}{error}".split())
        raise DataError(f"is not a run folder of this suite ({reason})", original) from None
    data = spec.stream.get("data_name")
    benchmark = visible(spec.benchmark if data is None else f"{spec.benchmark} on {data}")
    scored_on = "" if spec.evaluate_on == "test" else f" ({spec.evaluate_on} data)"
    names = benchmark + scored_on, visible(spec.method)
    return FinishedRun(original, track, spec, environment, tables, *names)


def _is_run_folder(path: Path) -> bool:
    return any((path / name).exists() for name in (SPEC, FAILED))


def _newest_code(runs: Sequence[FinishedRun]) -> str:
    """Text that names the newest of several versions of a user's files; else empty."""
    dated = [
        (run.environment.get("finished") or "", run.spec.code) for run in runs if run.spec.code
    ]
    if len({code for _, code in dated}) < 2:
        return ""
    return f" (the newest code is {max(dated)[1][:6]})"


def _commits(environments: Sequence[Mapping[str, Any]]) -> set[str | None]:
    return {environment.get("commit") for environment in environments}


def _versions(environments: Sequence[Mapping[str, Any]]) -> set[str | None]:
    """The versions of this package, if a run has no commit, as with an installed package."""
    if None not in _commits(environments):
        return set()
    return {environment["packages"].get("vcl-radial") for environment in environments}
