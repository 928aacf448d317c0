"""Scores of a regression run in progress, for both kinds of training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from vcl_radial.errors import Diverged
from vcl_radial.runs.training import Step
from vcl_radial.tracks.regression.settings import Run

Scores = dict[str, float]
"""Scores by metric: `log_likelihood` in nats per row, `rmse` in the target's unit."""

_SECONDS_BETWEEN = 2.0
"""Seconds between two progress reports."""


class Scored:
    """The scores of a run in progress.

    Args:
        run: the run that is trained.
        report: called between steps of the optimiser.
    """

    def __init__(self, run: Run, report: Callable[[Step], None]) -> None:
        self.run, self.report = run, report
        self.after: Mapping[int, Scores] = {}
        """Scores after each slice (from 1); the key 0 is for all rows at once."""
        self.seconds = 0.0
        self.carried_bytes: int | None = None
        """Bytes that the method keeps after the last slice; None for all rows at once."""

    def scored(self, done: int) -> Step:
        """The step after the last slice is scored and `done` slices are stored."""
        at, total = self.run.recipe.steps * max(1, len(self.after)), self.run.steps
        scalars = [*self.after.values()][-1]
        return Step(done, "scored", epoch=at, epochs=total, scalars=scalars, at=at)

    def fault(self) -> Diverged | None:
        """The error for a score that is not finite; None if all scores are finite."""
        for number, metric, value in self.rows():
            if not math.isfinite(value):
                where = f" after slice {number}" if number else ""
                return Diverged(
                    f"training diverged: {metric}{where} is {value}; lower learning_rate"
                )
        return None

    def rows(self) -> Iterator[tuple[int, str, float]]:
        """Slice, metric and value of all scores."""
        for number, scores in self.after.items():
            for metric, value in scores.items():
                yield number, metric, value

    def files(self) -> dict[str, str]:
        """The file `scores.csv`."""
        lines = [f"{number},{metric},{value!r}\n" for number, metric, value in self.rows()]
        return {"scores.csv": "".join(["slice,metric,value\n", *lines])}

    def facts(self) -> dict[str, float | None]:
        """Seconds (for a lane, its share of the program) and bytes carried in a sequence."""
        return {"seconds": self.seconds, "carried_bytes": self.carried_bytes}


def reports(lanes: Sequence[Scored]) -> Callable[[int], None]:
    """A function that reports the optimiser's steps in all lanes every few seconds."""
    last, total = time.monotonic(), lanes[0].run.steps

    def on_step(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN:
            last, done = time.monotonic(), min(steps, total)
            for lane in lanes:
                lane.report(Step(0, f"step {done} of {total}", epoch=done, epochs=total, at=done))

    return on_step
