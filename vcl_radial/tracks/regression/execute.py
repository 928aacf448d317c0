"""Runs in progress: splits and settings of one shape are lanes of one program."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from vcl_radial.errors import Diverged, UserError
from vcl_radial.runs.place import Place
from vcl_radial.runs.track import Step
from vcl_radial.runs.training import InOnePiece
from vcl_radial.tracks.regression.data import RegressionData, load_data
from vcl_radial.tracks.regression.sequence import train_in_sequence
from vcl_radial.tracks.regression.settings import DataSettings, Run
from vcl_radial.tracks.regression.training import Scores, train_and_score

_SECONDS_BETWEEN = 2.0
"""Two reports on how far training has come."""


class SplitTraining(InOnePiece):
    """A method on one split, from its start to its scores.

    Args:
        run: to be trained.
        data: its table.
        report: called between steps of Adam.
    """

    def __init__(self, run: Run, data: RegressionData, report: Callable[[Step], None]) -> None:
        super().__init__(run.steps)
        self.run, self.data, self.report = run, data, report
        self.after: Mapping[int, Scores] = {}
        """The scores after each slice; by 0 those of all rows at once."""
        self.seconds = 0.0

    def train(self) -> None:
        """Alone, as a program of one lane."""
        _train([self])
        if (fault := self.fault()) is not None:
            raise fault

    def fault(self) -> Diverged | None:
        """That a score is not a finite number."""
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
        """`scores.csv`."""
        lines = [f"{number},{metric},{value!r}\n" for number, metric, value in self.rows()]
        return {"scores.csv": "".join(["slice,metric,value\n", *lines])}

    def facts(self) -> dict[str, float]:
        """The seconds, of a lane its share of the program's."""
        return {"seconds": self.seconds}


class SplitLanes:
    """Runs of one table and one shape as lanes of one program."""

    def __init__(
        self, runs: Sequence[Run], place: Place, report: Callable[[int, Step], None]
    ) -> None:
        data = load_data_once(runs[0].data, place.data_dir)
        self.lanes = [SplitTraining(run, data, partial(report, k)) for k, run in enumerate(runs)]
        self._left_out: set[int] = set()

    def leave_out(self, lane: int) -> None:
        """Do not train a lane."""
        self._left_out.add(lane)

    def fault(self, lane: int) -> Diverged | None:
        """That its training diverged."""
        return self.lanes[lane].fault()

    def steps(self) -> Iterator[Mapping[int, Step]]:
        """All at once; nothing is yielded, for nothing can be stored."""
        kept = [lane for k, lane in enumerate(self.lanes) if k not in self._left_out]
        if kept:
            _train(kept)
        return iter(())


def _train(lanes: Sequence[SplitTraining]) -> None:
    """Train and score lanes as one program."""
    runs = [lane.run for lane in lanes]
    first, data = runs[0], lanes[0].data
    splits, recipes, slices = [r.seed for r in runs], [r.recipe for r in runs], first.data.slices
    validation = first.data.validation if first.evaluate_on == "validation" else None
    started = time.perf_counter()
    if slices is None:
        scores = train_and_score(data, splits, recipes, validation, _on_step(lanes))
        after = [{0: of_lane} for of_lane in scores]
    else:
        in_order = train_in_sequence(data, splits, recipes, slices, validation, _on_step(lanes))
        # What was learned from all rows at once is no slice.
        after = [dict(enumerate(of_lane, start=slices > 1)) for of_lane in in_order]
    for lane, of_lane in zip(lanes, after, strict=True):
        lane.after, lane.seconds = of_lane, (time.perf_counter() - started) / len(lanes)
        scalars = [*of_lane.values()][-1]
        total = lane.epochs
        lane.report(Step(0, "scored", epoch=total, epochs=total, scalars=scalars, at=total))


def _on_step(lanes: Sequence[SplitTraining]) -> Callable[[int], None]:
    """Report the steps of Adam of all lanes every few seconds."""
    last, total = time.monotonic(), lanes[0].epochs

    def on_step(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN:
            last, done = time.monotonic(), min(steps, total)
            for lane in lanes:
                lane.report(Step(0, f"step {done} of {total}", epoch=done, epochs=total, at=done))

    return on_step


@lru_cache(maxsize=1)  # a process carries out many runs of one table
def load_data_once(data: DataSettings, data_dir: Path | None) -> RegressionData:
    """See `load_data`."""
    return load_data(data, data_dir)


def check_data(data: DataSettings, data_dir: Path | None, splits: Sequence[int]) -> None:
    """Load a table, and see that its training rows can be cut into slices.

    Raises:
        UserError: they cannot.
        DataError: see `load_data`.
    """
    table = load_data_once(data, data_dir)
    fewest = min(len(table.splits[split].train) for split in splits)
    if data.slices is not None and data.slices > fewest:
        raise UserError(
            f"data.slices = {data.slices}: more than the {fewest} training rows of {data.name}; "
            "lower it"
        )
