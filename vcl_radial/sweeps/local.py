"""Jobs in worker processes on this machine, or one after another in this one."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection, wait

from vcl_radial.experiments.execute import Place
from vcl_radial.experiments.processes import ProcessDied, WorkerProcess, serve, start_server
from vcl_radial.sweeps.executor import Executor
from vcl_radial.sweeps.jobs import Ended, Job, Tell, attempt
from vcl_radial.sweeps.tracks.track import Run, Step


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
        start_server(place.device, "vcl_radial.sweeps.jobs", "vcl_radial.tracks.continual")
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
                if worker.alive:
                    self._idle.append(worker)
                else:
                    worker.dismiss()
                return message

    def close(self) -> None:
        """End all workers; what they were at goes on from its last finished step next time."""
        for worker in (*self._idle, *self._busy.values()):
            worker.terminate()
        for worker in (*self._idle, *self._busy.values()):
            worker.dismiss()
        self._idle, self._busy = [], {}


class _Worker(WorkerProcess):
    """A worker process and the job that it is at."""

    def __init__(self, place: Place) -> None:
        super().__init__(_work, place, threads=place.threads)
        self.job = Job(())

    def take(self, job: Job) -> None:
        self.job = job
        self.send(job)

    def hear(self) -> tuple[Run, Step] | list[Ended]:
        try:
            message: tuple[Run, Step] | list[Ended] = super().hear()
        except ProcessDied as died:
            return [Ended(run, "lost", str(died)) for run in self.job.runs]
        return message


def _work(line: Connection, place: Place) -> None:
    def tell(*message: object) -> None:
        line.send(message)

    serve(line, lambda job: attempt(job, place, tell))
