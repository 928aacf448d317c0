"""What carries jobs out: worker processes on this machine, or, in `on_ray`, a cluster's nodes."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol

from vcl_radial.runs.attempt import Job, Report, RunOutcome, attempt
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.processes import ProcessDied, WorkerProcess, serve
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import AnyTrack, Step


class Executor(Protocol):
    """Takes jobs; when one ends, the results of its runs lie in their folders."""

    def room(self) -> int:
        """How many more jobs it can take now."""

    def submit(self, job: Job) -> None:
        """Take a job."""

    def wait(self) -> Sequence[RunOutcome]:
        """How the runs of some job ended, once one has; or none, if nothing has for a while."""

    def close(self) -> None:
        """Stop at once what is under way; its runs go on another time."""


class MakeExecutor(Protocol):
    """Makes an executor; `device` is where its runs compute."""

    @property
    def device(self) -> str:
        """Either "cpu" or "cuda"."""

    def __call__(self, track: AnyTrack, place: RunContext, on_step: Report) -> Executor:
        """For runs of a track at a place; `on_step` is called as they go on."""


class LocalExecutor:
    """Jobs in worker processes on this machine, or one after another in this process.

    A worker whose process dies loses its job alone.

    Args:
        track: of the runs.
        place: where they compute, read and write.
        on_step: called as runs go on.
        workers: processes at a time; 0 to work in this process.
    """

    def __init__(self, track: AnyTrack, place: RunContext, on_step: Report, workers: int) -> None:
        self._track, self._place, self._on_step = track, place, on_step
        self._workers = workers
        self._queue: list[Job] = []
        self._idle: list[WorkerProcess] = []
        self._busy: dict[Connection, tuple[Job, WorkerProcess]] = {}

    def room(self) -> int:
        """Workers that have nothing to do."""
        return (self._workers or 1) - len(self._busy) - len(self._queue)

    def submit(self, job: Job) -> None:
        """Give a job to a worker that has nothing to do."""
        if not self._workers:
            self._queue.append(job)
            return
        worker = self._idle.pop() if self._idle else self._new_worker()
        worker.send(job)
        self._busy[worker.line] = job, worker

    def wait(self) -> Sequence[RunOutcome]:
        """How the runs of the next job ended.

        Raises:
            Exception: what a run's own faults do not explain; the other jobs are left.
        """
        if not self._workers:
            return attempt(self._queue.pop(), self._on_step, self._track, self._place)
        while True:
            for line in wait(list(self._busy)):
                job, worker = self._busy[line]  # type: ignore[index]
                try:
                    message = worker.receive()
                except ProcessDied as died:
                    del self._busy[worker.line]
                    worker.shutdown()
                    return [RunOutcome(run, "lost", str(died)) for run in job.runs]
                if not isinstance(message, _Answer):
                    self._on_step(*message)
                    continue
                del self._busy[worker.line]
                self._idle.append(worker)
                if message.error is not None:
                    raise message.error
                return message.ends

    def close(self) -> None:
        """End all workers; a run that is under way goes on from its last stored step next time."""
        workers = [*self._idle, *(worker for _, worker in self._busy.values())]
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.shutdown()
        self._idle, self._busy, self._queue = [], {}, []

    def _new_worker(self) -> WorkerProcess:
        return WorkerProcess(_serve, self._track, self._place, threads=self._place.threads)


def carry_out(executor: Executor, jobs: Sequence[Job]) -> Iterator[RunOutcome]:
    """Yield how each run ended, as its job ends; the first jobs begin first.

    Runs whose worker or node dies are done once more; if that one dies too, they are lost.
    """
    waiting = deque(jobs)
    retried: list[Any] = []
    under_way = 0
    with closing(executor):
        while waiting or under_way:
            while waiting and executor.room() > 0:
                executor.submit(waiting.popleft())
                under_way += 1
            ends = executor.wait()
            under_way -= bool(ends)
            again = [end for end in ends if end.status == "lost" and end.run not in retried]
            if again:
                print(f"{again[0].fault}; its job is done once more", flush=True)
                retried += [end.run for end in again]
                waiting.appendleft(Job(tuple(end.run for end in again)))
            yield from (end for end in ends if end not in again)


class _Answer(NamedTuple):
    """What a worker sends when a job has ended."""

    ends: list[RunOutcome]
    error: Exception | None = None


def _serve(line: Connection, track: AnyTrack, place: RunContext) -> None:
    def report(run: RunSpec, step: Step) -> None:
        line.send((run, step))

    def answer(job: Job) -> _Answer:
        try:
            return _Answer(attempt(job, report, track, place))
        except BrokenPipeError:  # the parent is gone
            raise
        except Exception as error:
            error.add_note(traceback.format_exc())
            return _Answer([], error)

    serve(line, answer)
