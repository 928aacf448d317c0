"""Jobs in worker processes on this machine, or one after another in this process.

A worker whose process dies loses its job alone; `executor.carry_out` has it done once more.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from vcl_radial.runs.processes import ProcessDied, WorkerProcess, serve

Job = TypeVar("Job")
Result = TypeVar("Result")

Report = Callable[..., None]
"""Called by the work while it goes on; what it is called with reaches `on_report`."""


@dataclass(frozen=True)
class Ended(Generic[Job, Result]):
    """How a job ended.

    Attributes:
        job: as it was submitted.
        result: what the work returned; None where its process died.
        death: how its process died, in words; None where it did not.
    """

    job: Job
    result: Result | None
    death: str | None = None


class Supervisor(Generic[Job, Result]):
    """Gives jobs to workers and waits for their ends.

    Args:
        work: does a job and may report on it; for workers a function of a module, or a partial of
            one. An exception that it raises is raised by `wait`.
        workers: processes at a time; 0 to work in this process.
        on_report: called with a job and what the work reports on it.
        threads: of a worker.
    """

    def __init__(
        self,
        work: Callable[[Job, Report], Result],
        workers: int,
        on_report: Callable[..., None] = lambda job, *report: None,
        threads: int = 1,
    ) -> None:
        self.workers = workers
        self._work, self._on_report, self._threads = work, on_report, threads
        self._queue: list[Job] = []
        self._idle: list[WorkerProcess] = []
        self._busy: dict[Connection, tuple[Job, WorkerProcess]] = {}

    def room(self) -> int:
        """How many more jobs can be taken now."""
        return (self.workers or 1) - len(self._busy) - len(self._queue)

    def submit(self, job: Job) -> None:
        """Take a job."""
        if not self.workers:
            self._queue.append(job)
            return
        worker = self._idle.pop() if self._idle else self._new_worker()
        worker.send(job)
        self._busy[worker.line] = job, worker

    def wait(self) -> Ended[Job, Result]:
        """How the next job ended, once one has."""
        if not self.workers:
            job = self._queue.pop()
            return Ended(job, self._work(job, partial(self._on_report, job)))
        while True:
            for line in wait(list(self._busy)):
                job, worker = self._busy[line]  # type: ignore[index]
                try:
                    message = worker.hear()
                except ProcessDied as died:
                    del self._busy[worker.line]
                    worker.dismiss()
                    return Ended(job, None, str(died))
                if not isinstance(message, _End):
                    self._on_report(job, *message)
                    continue
                del self._busy[worker.line]
                self._idle.append(worker)
                if message.error is not None:
                    raise message.error
                return Ended(job, message.result)

    def close(self) -> None:
        """End all workers; a job that is under way is left where it is."""
        team = [*self._idle, *(worker for _, worker in self._busy.values())]
        for worker in team:
            worker.terminate()
        for worker in team:
            worker.dismiss()
        self._idle, self._busy, self._queue = [], {}, []

    def _new_worker(self) -> WorkerProcess:
        return WorkerProcess(_serve, self._work, threads=self._threads)


class _End(NamedTuple):
    result: Any
    error: Exception | None = None


def _serve(line: Connection, work: Callable[[Any, Report], Any]) -> None:
    def report(*message: object) -> None:
        line.send(message)

    def attempt(job: Any) -> _End:
        try:
            return _End(work(job, report))
        except BrokenPipeError:  # the parent is gone
            raise
        except Exception as error:
            error.add_note(traceback.format_exc())
            return _End(None, error)

    serve(line, attempt)
