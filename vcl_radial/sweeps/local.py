"""Jobs in worker processes on this machine, or one after another in this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from vcl_radial.experiments.execute import Place
from vcl_radial.experiments.workers import end_with_parent
from vcl_radial.sweeps.executor import Executor
from vcl_radial.sweeps.jobs import Ended, Job, Tell, attempt
from vcl_radial.sweeps.tracks.track import Run, Step

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def local_executor(place: Place, jobs: int, tell: Tell) -> Executor:
    """So many jobs at a time; one works in this process."""
    return InProcess(place, tell) if jobs == 1 else Pool(place, jobs, tell)


class InProcess:
    """One job at a time, in this process."""

    def __init__(self, place: Place, tell: Tell) -> None:
        self.place, self.tell = place, tell
        self._job: Job | None = None

    def room(self) -> int:
        """One, if there is none."""
        return int(self._job is None)

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._job = job

    def wait(self) -> Sequence[Ended]:
        """Carry it out."""
        assert self._job is not None
        ends = attempt(self._job, self.place, self.tell)
        self._job = None
        return ends

    def close(self) -> None:
        """Nothing is under way."""


class Pool:
    """Worker processes, each with its own threads. One that dies loses only its own job."""

    def __init__(self, place: Place, jobs: int, tell: Tell) -> None:
        self.place, self.jobs, self.tell = place, jobs, tell
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}

    def room(self) -> int:
        """Workers that have nothing to do."""
        return self.jobs - len(self._busy)

    def submit(self, job: Job) -> None:
        """Give a job to a worker that has nothing to do."""
        worker = self._idle.pop() if self._idle else _Worker(self.place)
        worker.take(job)
        self._busy[worker.line] = worker

    def wait(self) -> Sequence[Ended]:
        """How the runs of the next job ended."""
        while True:
            for line in wait(list(self._busy)):
                worker = self._busy[line]  # type: ignore[index]
                message = worker.hear()
                if isinstance(message, tuple):
                    self.tell(*message)
                    continue
                del self._busy[worker.line]
                if worker.process.is_alive():
                    self._idle.append(worker)
                else:
                    worker.dismiss()
                return message

    def close(self) -> None:
        """End all workers; what they were at goes on from its last finished step next time."""
        for worker in (*self._idle, *self._busy.values()):
            worker.process.terminate()
        for worker in (*self._idle, *self._busy.values()):
            worker.dismiss()
        self._idle, self._busy = [], {}


class _Worker:
    """This side of a worker process."""

    def __init__(self, place: Place) -> None:
        # Spawned, not forked: a fork would copy the locks of torch's threads.
        context = multiprocessing.get_context("spawn")
        self.line, far_end = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_work, args=(far_end, place), daemon=True
        )
        # A terminal sends Ctrl-C to the workers too; they leave it to this process, and inherit
        # that, and how many threads they may have, before their first line of Python.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, str(place.threads)))
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        far_end.close()
        self.job = Job(())

    def take(self, job: Job) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # `hear` will report it
            self.line.send(job)

    def hear(self) -> tuple[Run, Step] | list[Ended]:
        try:
            message: tuple[Run, Step] | list[Ended] = self.line.recv()
        except (EOFError, OSError):
            self.process.join(timeout=10)
            words = f"its process died (exit code {self.process.exitcode}; out of memory?)"
            return [Ended(run, "lost", words) for run in self.job.runs]
        return message

    def dismiss(self) -> None:
        self.process.terminate()
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(timeout=10)
        self.line.close()


def _work(line: Connection, place: Place) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        try:
            job = line.recv()
            line.send(attempt(job, place, lambda *message: line.send(message)))
        except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent is gone
            return
