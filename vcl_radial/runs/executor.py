"""Executors of jobs: worker processes on this machine (a Ray cluster: `integrations.ray`)."""

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
from vcl_radial.runs.track import AnyTrack
from vcl_radial.runs.training import Step


class Executor(Protocol):
    """Takes jobs; when a job ends, the results of its runs lie in their folders."""

    @property
    def device(self) -> str | None:
        """The device of the runs, "cpu" or "cuda"; None for the one that the command chooses."""

    def start(self, track: AnyTrack, context: RunContext, on_step: Report) -> None:
        """Prepare for jobs.

        Args:
            track: the track of the runs.
            context: device and folders of the runs.
            on_step: called with the progress of the runs, unless they are elsewhere.

        Raises:
            UserError: the executor cannot be used.
        """

    def room(self) -> int:
        """The number of jobs that can be submitted now."""

    def submit(self, job: Job) -> None:
        """Start a job."""

    def wait(self) -> Sequence[RunOutcome]:
        """Outcomes of the next job that ends; empty if none ends for a while."""

    def close(self) -> None:
        """Stop the running jobs at once; their runs can be resumed."""


class LocalExecutor:
    """Runs jobs in worker processes on this machine, or one after another in this process.

    If the process of a worker dies, only its job is lost.

    Args:
        workers: number of worker processes; 0 to use this process.
    """

    device = None

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers
        self._queue: list[Job] = []
        self._idle: list[WorkerProcess] = []
        self._busy: dict[Connection, tuple[Job, WorkerProcess]] = {}

    def start(self, track: AnyTrack, context: RunContext, on_step: Report) -> None:
        """Prepare for jobs; workers start when they are needed."""
        self._track, self._context, self._on_step = track, context, on_step

    def room(self) -> int:
        """The number of idle workers."""
        return (self._workers or 1) - len(self._busy) - len(self._queue)

    def submit(self, job: Job) -> None:
        """Send a job to an idle worker."""
        if not self._workers:
            self._queue.append(job)
            return
        worker = self._idle.pop() if self._idle else self._new_worker()
        worker.send(job)
        self._busy[worker.line] = job, worker

    def wait(self) -> Sequence[RunOutcome]:
        """Outcomes of the next job that ends.

        Raises:
            Exception: an error in a worker that no fault of a run explains.
        """
        if not self._workers:
            return attempt(self._queue.pop(), self._on_step, self._track, self._context)
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
        """Stop all workers; an unfinished run resumes from its last stored step next time."""
        workers = [*self._idle, *(worker for _, worker in self._busy.values())]
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.shutdown()
        self._idle, self._busy, self._queue = [], {}, []

    def _new_worker(self) -> WorkerProcess:
        return WorkerProcess(_serve, self._track, self._context, threads=self._context.threads)


def carry_out(executor: Executor, jobs: Sequence[Job]) -> Iterator[RunOutcome]:
    """Yield the outcome of each run when its job ends; jobs start in order.

    Runs whose worker or node dies are retried once; if it dies again, they are lost.
    """
    waiting = deque(jobs)
    retried: list[Any] = []
    running = 0
    with closing(executor):
        while waiting or running:
            while waiting and executor.room() > 0:
                executor.submit(waiting.popleft())
                running += 1
            ends = executor.wait()
            running -= bool(ends)
            again = [end for end in ends if end.status == "lost" and end.run not in retried]
            if again:
                print(f"{again[0].fault}; its job is retried", flush=True)
                retried += [end.run for end in again]
                waiting.appendleft(Job(tuple(end.run for end in again)))
            yield from (end for end in ends if end not in again)


class _Answer(NamedTuple):
    """The message of a worker whose job has ended."""

    ends: list[RunOutcome]
    error: Exception | None = None


def _serve(line: Connection, track: AnyTrack, context: RunContext) -> None:
    def report(run: RunSpec, step: Step) -> None:
        line.send((run, step))

    def answer(job: Job) -> _Answer:
        try:
            return _Answer(attempt(job, report, track, context))
        except BrokenPipeError:  # the parent is gone
            raise
        except Exception as error:
            error.add_note(traceback.format_exc())
            return _Answer([], error)

    serve(line, answer)
