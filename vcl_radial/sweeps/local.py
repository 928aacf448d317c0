"""Jobs of a sweep in worker processes on this machine, or one after another in this one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import Ended, Job, attempt
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.place import Place
from vcl_radial.runs.processes import start_server
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.supervisor import Report, Supervisor
from vcl_radial.runs.track import AnyTrack, Step


class LocalExecutor:
    """So many jobs at a time; one works in this process."""

    def __init__(self, track: AnyTrack, place: Place, jobs: int, report: Report) -> None:
        workers = jobs if jobs > 1 else 0
        if workers:
            start_server(place.device, *track.worker_modules)

        def on_report(job: Job, run: RunSpec, step: Step) -> None:
            report(run, step)

        work = partial(carry_out, track=track, place=place)
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


def carry_out(job: Job, report: Report, track: AnyTrack, place: Place) -> list[Ended]:
    """As `attempt`; a checkpoint that cannot be used, another run's too, is thrown away."""
    for run in job.runs:
        folder = RunFolder(place.out, run)
        try:
            track.so_far(folder)
        except (UserError, LookupError, ValueError, TypeError) as error:
            print(f"{error}: this run starts anew", flush=True)
            folder.checkpoint.unlink(missing_ok=True)
    return attempt(job, report, track, place)
