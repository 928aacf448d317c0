"""Runs of one table in progress: a step is a slice, and all rows at once are one slice."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcl_radial.errors import Diverged, UserError
from vcl_radial.likelihoods.mixture import Mixture
from vcl_radial.methods.carried import carried_bytes, contents
from vcl_radial.metrics import conformal
from vcl_radial.runs.training import Step
from vcl_radial.tracks.regression.data import RegressionData, load_data
from vcl_radial.tracks.regression.learner import Job, Learner
from vcl_radial.tracks.regression.models import learner_of
from vcl_radial.tracks.regression.scores import Scores, interval_scores, score
from vcl_radial.tracks.regression.seeds import split_seed
from vcl_radial.tracks.regression.settings import DataSettings, Run
from vcl_radial.tracks.regression.splits import LaneSplits

_SECONDS_BETWEEN = 2.0
"""Seconds between two progress reports."""


class TableRun:
    """A method on one split; see `vcl_radial.runs.training.Training`.

    Args:
        run: the run to train.
        lane: its number among the runs that train together.
        together: these runs.
        report: called between steps of the optimiser.
    """

    def __init__(
        self, run: Run, lane: int, together: TableRuns, report: Callable[[Step], None]
    ) -> None:
        self.run, self.lane, self.together, self._report = run, lane, together, report
        self.learner = together.learner
        self.after: dict[int, Scores] = {}
        """Scores after each slice (from 1); the key 0 is for all rows at once."""
        self.earlier: Sequence[str] = ()
        """The names of the slices that a kept model had learnt, where the run updates one."""
        self.seconds = 0.0
        """Seconds of the training; in a lane, its share of the program."""
        self._start = contents(self.learner.start(lane))
        self._reported = time.monotonic()

    @property
    def task_names(self) -> list[str]:
        """The names of the learnt slices."""
        if self.earlier:
            return [*self.earlier, *(update.task for update in (self.run.updates or [])[-1:])]
        if len(self.learner.job.slices) == 1:
            return ["all rows"]
        return [f"slice {number + 1}" for number in range(self.slices_done)]

    @property
    def slices_done(self) -> int:
        """The number of slices that are learnt."""
        return self.learner.done(self.lane) * self.learner.slices_per_step

    def position(self) -> Step:
        """The progress before the next slice."""
        return self._step("start")

    def steps(self) -> Iterator[Step]:
        """Learn and score the remaining slices without other runs.

        Raises:
            Diverged: the loss or a score is not a finite number.
        """
        for steps in self.together.steps():
            yield from steps.values()
        if (fault := self.fault()) is not None:
            raise fault

    def add(self, scores: Scores, seconds: float) -> Step:
        """Add the scores after the last slice, and the seconds that it took."""
        number = self.slices_done if len(self.learner.job.slices) > 1 else 0
        self.after[number] = scores
        self.seconds += seconds
        return self._step("scored", scores)

    def on_steps(self, steps: int) -> None:
        """Report the optimiser's steps so far, every few seconds."""
        if time.monotonic() - self._reported > _SECONDS_BETWEEN:
            self._reported, total = time.monotonic(), self.run.steps
            done = min(steps, total)
            message = f"step {done} of {total}"
            self._report(Step(0, message, epoch=done, epochs=total, at=done))

    def fault(self) -> Diverged | None:
        """The error for a score that is not finite; None if all scores are finite."""
        for number, metric, value in self._rows():
            if not math.isfinite(value):
                where = f" after slice {number}" if number else ""
                return Diverged(
                    f"training diverged: {metric}{where} is {value}; lower learning_rate"
                )
        return None

    def state_dict(self) -> dict[str, Any]:
        """The learner's state and the scores so far."""
        state = self.learner.state_dict(self.lane)
        return {**state, "after": dict(self.after), "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from the result of `state_dict`."""
        self.learner.load_state_dict(self.lane, state)
        self.after, self.seconds = dict(state["after"]), state["seconds"]

    def files(self) -> dict[str, str]:
        """The file `scores.csv`."""
        lines = [f"{number},{metric},{value!r}\n" for number, metric, value in self._rows()]
        return {"scores.csv": "".join(["slice,metric,value\n", *lines])}

    def kept(self) -> dict[str, Any]:
        """An empty table: no other result is kept."""
        return {}

    def facts(self) -> dict[str, float | None]:
        """Seconds, and the bytes that the method carries from slice to slice."""
        carried = None
        if len(self.learner.job.slices) > self.learner.slices_per_step:
            carried = carried_bytes(self.learner.states(self.lane), self._start)
        return {"seconds": self.seconds, "carried_bytes": carried}

    def _rows(self) -> Iterator[tuple[int, str, float]]:
        """Slice, metric and value of all scores."""
        for number, scores in self.after.items():
            for metric, value in scores.items():
                yield number, metric, value

    def _step(self, message: str, scalars: Mapping[str, float] | None = None) -> Step:
        at, done = self.run.recipe.steps * self.slices_done, self.learner.done(self.lane)
        return Step(done, message, epoch=at, epochs=self.run.steps, scalars=scalars or {}, at=at)


class TableRuns:
    """Runs of one table and one shape, or one run of any method; see `vcl_radial.runs.training`.

    Args:
        runs: the runs.
        data: their table.
        report: called with a lane and its progress between steps of the optimiser.
        splits: the splits of the runs, if they are others than those of the table.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        data: RegressionData,
        report: Callable[[int, Step], None],
        splits: Any = None,
    ) -> None:
        first = runs[0]
        recipe, lanes = first.recipe, first.recipe.lane if first.is_lane else None
        self.table = data
        validation = first.data.validation if first.evaluate_on == "validation" else None
        if splits is None:
            splits = LaneSplits(data, [run.seed for run in runs], validation, first.data.held_out)
        self.splits = splits
        # A single slice has the rows in the order of the first component, but not without lanes.
        slices = first.data.slices if lanes or first.data.slices != 1 else None
        job = Job(
            recipes=[run.recipe for run in runs],
            seeds=[split_seed(run.seed) for run in runs],
            slices=self.splits.in_slices(slices),
            x=self._inputs(),
            hidden=recipe.hidden or [data.hidden],
            on_steps=lambda lane, steps: self.lanes[lane].on_steps(steps),
        )
        self.learner: Learner = learner_of(first, job, self.splits.train)
        self.lanes = [
            TableRun(run, lane, self, lambda step, lane=lane: report(lane, step))  # type: ignore[misc]
            for lane, run in enumerate(runs)
        ]

    def leave_out(self, lane: int) -> None:
        """Stop training a lane."""
        self.learner.leave_out(lane)

    def fault(self, lane: int) -> Diverged | None:
        """The error of a lane's diverged training; None if it did not diverge."""
        return self.lanes[lane].fault()

    def steps(self) -> Iterator[dict[int, Step]]:
        """Learn and score the remaining slices. A lane that diverges stops alone."""
        torch.set_flush_denormal(True)
        started = time.perf_counter()
        for trained in self.learner.steps():
            scores = self._scores(self.learner.predict(), trained)
            seconds = (time.perf_counter() - started) / len(trained)
            pairs = zip(trained, scores, strict=True)
            steps = {lane: self.lanes[lane].add(values, seconds) for lane, values in pairs}
            for lane in trained:
                if self.fault(lane) is not None:
                    self.leave_out(lane)
                    del steps[lane]
            yield steps
            started = time.perf_counter()

    def _inputs(self) -> Tensor:
        """The inputs of the predictions, `[R, n, d]`: test rows, then those of the calibration."""
        test, held_out = self.splits.test, self.splits.held_out
        return test.x if held_out is None else torch.cat([test.x, held_out.x], 1)

    def _scores(self, predicted: Mixture, lanes: Sequence[int]) -> list[Scores]:
        """The scores of lanes, with those of intervals if rows are held out to calibrate them."""
        test, y_scale = self.splits.test.of_lanes(lanes), self.splits.y_scale[lanes]
        if self.splits.held_out is None:
            return score(predicted, test, y_scale)
        on_test, on_held_out = predicted.split(test.y.shape[1])
        held_out = self.splits.held_out.of_lanes(lanes)
        of_intervals = interval_scores((on_test, on_held_out), (test, held_out), y_scale)
        both = zip(score(on_test, test, y_scale), of_intervals, strict=True)
        return [scores | intervals for scores, intervals in both]


@lru_cache(maxsize=1)  # a process trains many runs on one table
def load_data_once(data: DataSettings, data_dir: Path | None) -> RegressionData:
    """Load a table, or take it from the cache; see `load_data`."""
    return load_data(data, data_dir)


def check_data(data: DataSettings, data_dir: Path | None, splits: Sequence[int]) -> RegressionData:
    """Load a table, and check that it has the splits, and enough training rows for the slices.

    Raises:
        UserError: there are fewer splits, or fewer rows than slices.
        DataError: see `load_data`.
    """
    table = load_data_once(data, data_dir)
    if (last := max(splits)) >= (count := len(table.splits)):
        fix = "; raise data.splits" if data.table else ""
        raise UserError(
            f"there is no split {last}: it has {count}, one for each of --seeds {count}{fix}",
            at=data.name,
        )
    fewest = min(len(table.splits[split].train) for split in splits)
    if data.slices is not None and data.slices > fewest:
        raise UserError(
            f"data.slices = {data.slices}: more than the {fewest} training rows of {data.name}; "
            "lower it"
        )
    held_out = min(round((data.held_out or 1) * len(table.splits[n].train)) for n in splits)
    if held_out < conformal.FEWEST:
        raise UserError(
            f"data.uncertainty needs {conformal.FEWEST} held-out rows of {data.name}, and a split "
            f"has {held_out}: raise data.validation, or leave uncertainty out"
        )
    return table
