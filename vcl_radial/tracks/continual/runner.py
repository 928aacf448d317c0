"""Runs of task sequences, for the command and from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vcl_radial.runs import runner
from vcl_radial.runs.attempt import Ended
from vcl_radial.runs.run import Place
from vcl_radial.tracks.continual.specification import Run
from vcl_radial.tracks.continual.track import Continual


def perform(
    runs: Sequence[Run],
    place: Place,
    jobs: int | None = None,
    lanes: int | None = None,
    *,
    in_workers: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Ended]:
    """`vcl_radial.runs.runner.perform` for task sequences."""
    return runner.perform(
        Continual(), runs, place, jobs, lanes, in_workers=in_workers, meanwhile=meanwhile
    )
