"""What carries jobs out: worker processes on this machine, or, in `on_ray`, a cluster's nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Protocol, TypeAlias

from vcl_radial.runs.attempt import Ended, Job, attempt
from vcl_radial.runs.place import Place
from vcl_radial.runs.supervisor import Supervisor
from vcl_radial.runs.track import AnyTrack, Step

OnStep: TypeAlias = Callable[[Any, Step], None]
"""Called with a run and how far it has come."""


class Executor(Protocol):
    """Takes jobs; when one ends, the results of its runs lie in their folders."""

    def room(self) -> int:
        """How many more jobs it can take now."""

    def submit(self, job: Job) -> None:
        """Take a job."""

    def wait(self) -> Sequence[Ended]:
        """How the runs of some job ended, once one has; or none, if nothing has for a while."""

    def close(self) -> None:
        """Stop at once what is under way; its runs go on another time."""


class MakeExecutor(Protocol):
    """A function that makes an executor."""

    def __call__(self, track: AnyTrack, place: Place, on_step: OnStep) -> Executor:
        """For runs of a track at a place; `on_step` is called as they go on."""


class LocalExecutor:
    """Jobs in worker processes on this machine, or one after another in this process.

    Args:
        track: of the runs.
        place: where they compute, read and write.
        on_step: called as runs go on.
        workers: processes at a time; 0 to work in this process.
    """

    def __init__(self, track: AnyTrack, place: Place, on_step: OnStep, workers: int) -> None:
        def on_report(job: Job, run: Any, step: Step) -> None:
            on_step(run, step)

        work = partial(attempt, track=track, place=place)
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
        if ended.result is None:
            return [Ended(run, "lost", ended.death) for run in ended.job.runs]
        return ended.result

    def close(self) -> None:
        """End all workers; a run that is under way goes on from its last stored step next time."""
        self._supervisor.close()


def carry_out(executor: Executor, jobs: Sequence[Job]) -> Iterator[Ended]:
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
            again = [end for end in ends if end.how == "lost" and end.run not in retried]
            if again:
                print(f"{again[0].fault}; its job is done once more", flush=True)
                retried += [end.run for end in again]
                waiting.appendleft(Job(tuple(end.run for end in again)))
            yield from (end for end in ends if end not in again)
