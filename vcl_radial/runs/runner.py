"""Carry out the runs of a command that are not finished yet, and show their progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs import tracks
from vcl_radial.runs.attempt import Job, RunOutcome
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.executor import Executor, LocalExecutor, carry_out
from vcl_radial.runs.folder import RunFolder, check_output
from vcl_radial.runs.processes import ProcessDied, WorkerProcess, serve, start_server
from vcl_radial.runs.progress import Progress
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack
from vcl_radial.system.quiet import quiet

LANES_ON_GPU = 64
"""Number of runs that fill a large GPU."""


def perform(
    runs: Sequence[RunSpec],
    context: RunContext,
    jobs: int | None = None,
    lanes: int | None = None,
    *,
    in_workers: bool = False,
    executor: Executor | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[RunOutcome]:
    """Carry out the runs that are not finished yet, and return their outcomes.

    Args:
        runs: the runs of the command, all of one track.
        context: device and folders of the runs.
        jobs: worker processes; None for one per core, but one on a GPU.
        lanes: runs of one shape that a worker trains together; None for the track's number, but
            more on a GPU.
        executor: an executor; None for worker processes on this machine.
        in_workers: whether even a single job runs in a worker and not in this process.
        meanwhile: work that this process does while the server of the workers imports PyTorch.

    Raises:
        UserError: a run has a fault, or the data or the output folder cannot be used; raised
            before any run starts.
    """
    track = tracks.find(runs[0].TRACK)
    check_output(context.out)
    todo = [run for run in runs if _needs_running(RunFolder(context.out, run))]
    for name in context.log:
        folders = (RunFolder(context.out, run).path / name for run in runs if run not in todo)
        if without := sum(not folder.is_dir() for folder in folders):
            print(
                f"{name}: {without} runs were finished before without this log and have no "
                "curves; choose another folder of results to have them"
            )
    if not todo:
        print(f"{runs[0].benchmark}: all {len(runs)} runs were finished before")
        return []
    if jobs is None:
        jobs = 1 if context.device == "cuda" else available_cores()
    jobs = min(jobs, len(todo))
    context = with_threads(context, track, jobs)
    alone = (jobs == 1 and not in_workers) or executor is not None
    if alone:
        check(track, todo, context.data_dir)
    else:
        if start_server(context.device, *track.worker_modules):
            meanwhile()
        _check_in_worker(track, todo, context)
    if lanes is None:
        lanes = default_lanes(track, context.device)
    work = [Job(tuple(batch)) for batch in track.batches(todo, lanes)]
    jobs = min(jobs, len(work))
    alone |= jobs == 1 and not in_workers
    at_once = min(len(todo), jobs * max(len(job.runs) for job in work))
    how = f"{at_once} at a time" if executor is None else "on a cluster"
    executor = executor or LocalExecutor(0 if alone else jobs)
    ends = []
    epochs = [track.epochs(run) for run in todo]
    kept = len(runs) - len(todo)
    with Progress(todo, epochs, how, kept, track.counts) as progress:
        executor.start(track, context, progress.show)
        for end in carry_out(executor, work):
            progress.end(end.run, end.status)
            fix = f"run the same command again to resume from its last finished {track.step}"
            lost = replace(end, fault=f"{end.fault}; {fix}")
            ends.append(lost if end.status == "lost" else end)
    return ends


def check(track: AnyTrack, runs: Sequence[RunSpec], data_dir: Path | None) -> None:
    """Check the specs of runs, then their data and methods; this imports PyTorch.

    Raises:
        UserError: a run has a fault, or the data cannot be used.
    """
    with quiet():  # the track's imports warn
        track.check_runs(runs)
        track.check_data(runs, data_dir)


def default_lanes(track: AnyTrack, device: str) -> int:
    """The default number of runs of one shape that train as one program."""
    return LANES_ON_GPU if device == "cuda" and track.has_lanes else track.lanes


def with_threads(context: RunContext, track: AnyTrack, at_once: int) -> RunContext:
    """The context with the number of threads per run, if `at_once` runs share the cores."""
    if not track.uses_all_cores:
        return context
    return replace(context, threads=max(1, available_cores() // at_once))


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _needs_running(folder: RunFolder[Any]) -> bool:
    fault = folder.fault()
    if fault is None:
        folder.discard_leftover()
    if fault not in (None, "not finished"):
        print(f"{fault}: this run is repeated")
    return fault is not None


def _check_in_worker(track: AnyTrack, runs: Sequence[RunSpec], context: RunContext) -> None:
    worker = WorkerProcess(_check, track, context.data_dir, threads=1)
    try:
        worker.send(runs)
        fault: UserError | None = worker.receive()
    except ProcessDied as died:
        raise UserError(f"the data cannot be read: {died}") from None
    finally:
        worker.shutdown()
    if fault is not None:
        raise fault


def _check(line: Connection, track: AnyTrack, data_dir: Path | None) -> None:
    def attempt(runs: Sequence[RunSpec]) -> UserError | None:
        try:
            check(track, runs, data_dir)
        except UserError as error:
            fault = UserError(str(error))
            fault.key = error.key
            return fault
        return None

    serve(line, attempt)
