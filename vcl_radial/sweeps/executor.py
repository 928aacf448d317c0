"""What carries the jobs of a sweep out, here or elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vcl_radial.runs.attempt import Ended, Job


class Executor(Protocol):
    """Takes jobs and tells how they ended; the results lie in the run folders by then."""

    def room(self) -> int:
        """How many more jobs it can take now."""

    def submit(self, job: Job) -> None:
        """Take a job."""

    def wait(self) -> Sequence[Ended]:
        """How the runs of some job ended, once one has; or none, if nothing has for a while."""

    def close(self) -> None:
        """Stop at once what is under way; its runs go on another time."""
