"""A command's runs: finished ones are kept, the others carried out and shown as they go on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from vcl_radial.data_files import image_files, required_root
from vcl_radial.errors import UserError
from vcl_radial.experiments.execute import Place
from vcl_radial.experiments.lanes import batches
from vcl_radial.experiments.preflight import check_data, check_output
from vcl_radial.experiments.processes import (
    NEEDED,
    ProcessDied,
    WorkerProcess,
    serve,
    start_server,
)
from vcl_radial.experiments.progress import Progress
from vcl_radial.experiments.run_folder import RunFolder
from vcl_radial.experiments.specification import Run
from vcl_radial.experiments.workers import Outcome, carry_out
from vcl_radial.tracks.settings import IMAGE_FOLDER

LANES_ON_GPU = 64
"""So many runs fill a large GPU."""


def perform(
    runs: Sequence[Run],
    place: Place,
    jobs: int | None = None,
    lanes: int | None = None,
    *,
    in_workers: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Carry out what is not finished yet and give the outcomes of all that was tried.

    Args:
        runs: the runs of the command.
        place: where they compute, read and write.
        jobs: worker processes; None for one per core, but one on a GPU.
        lanes: runs of one shape that a worker trains together; None for 1, but many on a GPU.
        in_workers: whether one job, too, works in a worker and not in this process.
        meanwhile: what this process does while the server of the workers imports PyTorch.

    Raises:
        UserError: the data or the output folder cannot be used, found before any run starts.
    """
    check_output(place.out)
    todo = [run for run in runs if _needs_running(RunFolder(place.out, run))]
    for logger in place.log:
        folders = (RunFolder(place.out, run).path / logger for run in runs if run not in todo)
        if without := sum(not folder.is_dir() for folder in folders):
            print(
                f"--log {logger}: {without} runs were finished before without it and have no "
                "curves; choose another folder with --out to have them"
            )
    if not todo:
        print(f"{runs[0].benchmark}: all {len(runs)} runs were finished before")
        return []
    check_data(todo, place.data_dir)
    if jobs is None:
        jobs = 1 if place.device == "cuda" else available_cores()
    if lanes is None:
        lanes = LANES_ON_GPU if place.device == "cuda" else 1
    work = batches(todo, lanes)
    jobs = min(jobs, len(work))
    alone = jobs == 1 and not in_workers
    if not alone and start_server(place.device, *NEEDED):
        meanwhile()
    if {run.stream.dataset for run in todo} != {"digits"}:  # which cannot be damaged
        load_data(todo, place.data_dir) if alone else _load_in_worker(todo, place)
    outcomes = []
    at_once = min(len(todo), jobs * max(map(len, work)))
    with Progress(todo, jobs=at_once, kept=len(runs) - len(todo)) as progress:
        for outcome in carry_out(work, place, 0 if alone else jobs, progress.show):
            progress.end(outcome.run, outcome.fault, outcome.elsewhere)
            outcomes.append(outcome)
    return outcomes


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _needs_running(folder: RunFolder) -> bool:
    fault = folder.fault()
    if fault not in (None, "not finished"):
        print(f"{fault}: this run is done again")
    return fault is not None


def load_data(runs: Iterable[Run], data_dir: Path | None) -> None:
    """Load each data set once: one message for all runs, and one download, not one per worker.

    Raises:
        UserError: one cannot be read.
    """
    from vcl_radial.streams import load_dataset

    streams = [run.stream for run in runs]
    for name, keys in sorted({(s.dataset, tuple(s.loading.items())) for s in streams}, key=str):
        load_dataset(name, data_dir, **dict(keys))
        if name == IMAGE_FOLDER:
            _name_left_out(required_root(name, data_dir))


def _load_in_worker(runs: Sequence[Run], place: Place) -> None:
    worker = WorkerProcess(_load, place.data_dir, threads=1)
    try:
        worker.send(runs)
        fault: UserError | None = worker.hear()
    except ProcessDied as died:
        raise UserError(f"the data cannot be read: {died}") from None
    finally:
        worker.dismiss()
    if fault is not None:
        raise fault


def _load(line: Connection, data_dir: Path | None) -> None:
    def attempt(runs: Sequence[Run]) -> UserError | None:
        try:
            load_data(runs, data_dir)
        except UserError as error:
            return UserError(str(error))
        return None

    serve(line, attempt)


def _name_left_out(root: Path) -> None:
    left_out = image_files(root).left_out
    if left_out:
        print(
            f"{root}: files that are no images by their ending are left out ({len(left_out)}, the "
            f"first is {left_out[0]})",
            file=sys.stderr,
        )
