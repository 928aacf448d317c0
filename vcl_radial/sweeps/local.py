"""Jobs of a sweep in worker processes on this machine, or one after another in this one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vcl_radial.experiments.execute import Place
from vcl_radial.experiments.processes import start_server
from vcl_radial.experiments.supervisor import Report, Supervisor
from vcl_radial.sweeps.jobs import Ended, Job, Tell, attempt
from vcl_radial.sweeps.tracks.track import Run, Step


class LocalExecutor:
    """So many jobs at a time; one works in this process."""

    def __init__(self, place: Place, jobs: int, tell: Tell) -> None:
        workers = jobs if jobs > 1 else 0
        if workers:
            start_server(place.device, "vcl_radial.sweeps.jobs", "vcl_radial.tracks.continual")

        def on_report(job: Job, run: Run, step: Step) -> None:
            tell(run, step)

        work = partial(_attempt, place=place)
        self._supervisor = Supervisor(work, workers, on_report, place.threads)

    def room(self) -> int:
        """Workers that have nothing to do."""
        return self._supervisor.room()

    def submit(self, job: Job) -> None:
        """Give a job to a worker that has nothing to do."""
        self._supervisor.submit(job)

    def wait(self) -> Sequence[Ended]:
        """How the runs of the next job ended."""
        ended = self._supervisor.wait()
        if ended.death is not None:
            return [Ended(run, "lost", ended.death) for run in ended.job.runs]
        return ended.result

    def close(self) -> None:
        """End all workers; what they were at goes on from its last finished step next time."""
        self._supervisor.close()


def _attempt(job: Job, report: Report, place: Place) -> list[Ended]:
    return attempt(job, place, report)
