"""Check an entry of the leaderboard: a folder of reports with evidence, as `report` writes it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from vcl_radial.config import outside
from vcl_radial.errors import UserError
from vcl_radial.metrics import METRICS, average_accuracy
from vcl_radial.reporting import evidence
from vcl_radial.reporting.blocks import signed
from vcl_radial.reporting.gather import gather, read_runs
from vcl_radial.reporting.leaderboard import is_sequence_of_tasks, origin_of
from vcl_radial.reporting.scores import scores_table, without_avalanche
from vcl_radial.runs import catalogue
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.environment import seconds
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.runner import perform
from vcl_radial.runs.track import FinishedRun

FREE_KEYS = ("class_order", "data_name", "checksum")
"""Keys of a stream in which an entry may differ from the benchmark."""

TOLERANCE = 0.5
"""Points of average accuracy by which a repeated run may differ: processors round differently."""


def check_entry(
    folder: Path, *, repeat: bool = False, trust: bool = False, data_dir: Path | None = None
) -> tuple[list[str], list[str]]:
    """Check an entry, and return lines on what it holds and lines on its faults.

    The files have the checksums of `evidence.json` and can be read; every run was scored on the
    test data of a shipped benchmark with the stream of this version; all seeds of a method have the
    same settings; scores are possible values.

    Args:
        folder: the entry.
        repeat: whether the quickest run is trained again and its average accuracy compared; of
            runs with a user's classes, the quickest of these.
        trust: whether the user's classes that the entry names may be imported; this runs code that
            the author of the entry has written.
        data_dir: the folder of the data, for the repeated run.

    Raises:
        UserError: the folder holds no evidence; or, to repeat a run, the data are missing or the
            entry names classes without `trust`.
    """
    if not any(folder.rglob(evidence.FILE)):
        fault = f"holds no {evidence.FILE}; write the entry with `vcl-radial report --evidence`"
        raise UserError(fault, folder)
    with outside.consent(trust):
        runs, faults = gather(folder)
        faults += [line for run in runs for line in _faults(run)]
        faults += _mixed_settings(runs)
        if repeat and not faults:
            outside.add_search_path(folder / evidence.FILE)
            with outside.named_by(folder):
                faults += _repeated(runs, data_dir)
    return [*_contents(runs)], list(dict.fromkeys(faults))


def _contents(runs: Sequence[FinishedRun]) -> Iterator[str]:
    """One line per benchmark and method."""
    groups: dict[tuple[str, str], list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault((run.benchmark, run.method), []).append(run)
    for (benchmark, method), group in groups.items():
        count = f"{len(group)} seed{'s' if len(group) > 1 else ''}"
        yield f"{benchmark}, {method}: {count}, {origin_of(group[0])} settings"


def _faults(run: FinishedRun) -> Iterator[str]:
    """What is wrong with one run."""
    name = f"{run.benchmark}, {run.method}, seed {run.spec.seed}"
    if run.spec.evaluate_on != "test":
        yield f"{name}: was scored on {run.spec.evaluate_on} data; run it on test data"
    if run.spec.benchmark not in catalogue.names("benchmark"):
        yield f"{name}: {run.spec.benchmark} is no benchmark of this version"
        return
    if (track := catalogue.load("benchmark", run.spec.benchmark).track) != run.track.name:
        yield f"{name}: {run.spec.benchmark} is a benchmark of {track}"
        return
    if not is_sequence_of_tasks(run):
        yield f"{name}: is no sequence of tasks with accuracies"
        return
    is_shipped = run.spec.method in catalogue.names("method", run.track.name)
    method = run.spec.method if is_shipped else "naive"  # the stream is the same for all methods
    (planned, *_) = plan(run.spec.benchmark, [method], [run.spec.seed])
    shipped, stream = planned.settings()["stream"], run.spec.stream
    for key in sorted({*shipped, *stream} - {*FREE_KEYS}):
        if shipped.get(key) != stream.get(key):
            yield (
                f"{name}: stream.{key} = {stream.get(key)!r}, and the benchmark has "
                f"{shipped.get(key)!r}"
            )
    if run.spec.updates:
        yield f"{name}: is an update, which has learned more than the benchmark"
    tasks, trained = len(run.environment["tasks"]), planned.stream.trained_tasks
    if tasks != trained:
        yield f"{name}: has scores on {tasks} tasks, and the benchmark has {trained}"
    yield from _impossible_scores(run, name)


def _impossible_scores(run: FinishedRun, name: str) -> Iterator[str]:
    """Scores that are not finite, or accuracies outside of 0 to 100 %."""
    scores = run.track.scores(run)
    for metric, value in zip(scores["metric"], scores["value"], strict=True):
        in_per_cent = metric == "accuracy"
        if not math.isfinite(value) or (in_per_cent and not 0.0 <= value <= 100.0):
            heading = METRICS[metric].heading if metric in METRICS else metric
            yield f"{name}: {heading} = {value} is no possible score"
            return


def _mixed_settings(runs: Sequence[FinishedRun]) -> Iterator[str]:
    labels: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        labels.setdefault((run.benchmark, run.spec.method), set()).add(run.method)
    for (benchmark, method), names in labels.items():
        if len(names) > 1:
            yield f"{benchmark}, {method}: seeds have {len(names)} different settings"


def _repeated(runs: Sequence[FinishedRun], data_dir: Path | None) -> Iterator[str]:
    """Train the quickest run again, of a user's code if there is some; yield its fault.

    Raises:
        UserError: the data are missing, or the run fails.
    """
    own = [run for run in runs if run.spec.code]
    run = min(own or runs, key=lambda run: seconds(run.environment))
    name = f"{run.benchmark}, {run.method}, seed {run.spec.seed}"
    spec = run.track.validated(run.spec.model_dump(exclude_unset=True, exclude_none=True))
    spec.from_outside()  # raises for classes that may not be imported
    spec = spec.on_data(data_dir)
    if spec.code != run.spec.code:
        yield f"{name}: the files of its classes are not those of the run"
        return
    with TemporaryDirectory() as out:
        for end in perform([spec], RunContext(Path(out), data_dir), jobs=1):
            if end.fault:
                yield f"{name}: {end.fault}"
                return
        (again,) = read_runs([RunFolder(Path(out), spec).path])
    difference = _accuracy(again) - _accuracy(run)
    print(f"{name}: repeated, {signed(difference, 2)} points of average accuracy")
    if abs(difference) > TOLERANCE:
        yield f"{name}: a second run differs by {signed(difference, 2)} points (over {TOLERANCE})"


def _accuracy(run: FinishedRun) -> float:
    """The average accuracy of a run at the end, in per cent."""
    return average_accuracy(without_avalanche(scores_table([run])))
