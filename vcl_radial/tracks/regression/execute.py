"""Runs in progress: splits and settings of one shape are lanes of one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from vcl_radial.errors import Diverged, UserError
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.training import NonResumableTraining, Step
from vcl_radial.tracks.regression.data import RegressionData, load_data
from vcl_radial.tracks.regression.results import Scored, reports
from vcl_radial.tracks.regression.sequence import train_in_sequence
from vcl_radial.tracks.regression.settings import DataSettings, Run
from vcl_radial.tracks.regression.training import train_and_score


class SplitTraining(Scored, NonResumableTraining):
    """A method on one split, from its start to its scores.

    Args:
        run: the run to train.
        data: the run's table.
        report: called between steps of Adam.
    """

    def __init__(self, run: Run, data: RegressionData, report: Callable[[Step], None]) -> None:
        Scored.__init__(self, run, report)
        NonResumableTraining.__init__(self, run.steps)
        self.data = data

    def train(self) -> None:
        """Train the run alone, as a program of one lane."""
        _train([self])
        if (fault := self.fault()) is not None:
            raise fault


class SplitLanes:
    """Runs of one table and one shape as lanes of one program."""

    def __init__(
        self, runs: Sequence[Run], context: RunContext, report: Callable[[int, Step], None]
    ) -> None:
        data = load_data_once(runs[0].data, context.data_dir)
        self.lanes = [SplitTraining(run, data, partial(report, k)) for k, run in enumerate(runs)]
        self._left_out: set[int] = set()

    def leave_out(self, lane: int) -> None:
        """Leave a lane untrained."""
        self._left_out.add(lane)

    def fault(self, lane: int) -> Diverged | None:
        """The error of a lane's diverged training; None if it did not diverge."""
        return self.lanes[lane].fault()

    def steps(self) -> Iterator[Mapping[int, Step]]:
        """Train all lanes at once; yield nothing, because nothing can be stored."""
        lanes = [lane for k, lane in enumerate(self.lanes) if k not in self._left_out]
        if lanes:
            _train(lanes)
        return iter(())


def _train(lanes: Sequence[SplitTraining]) -> None:
    """Train and score lanes as one program."""
    runs = [lane.run for lane in lanes]
    first, data = runs[0], lanes[0].data
    splits, recipes, slices = [r.seed for r in runs], [r.recipe for r in runs], first.data.slices
    validation = first.data.validation if first.evaluate_on == "validation" else None
    started = time.perf_counter()
    if slices is None:
        scores = train_and_score(data, splits, recipes, validation, reports(lanes))
        after = [{0: lane_scores} for lane_scores in scores]
    else:
        sequences = train_in_sequence(data, splits, recipes, slices, validation, reports(lanes))
        # All rows at once have the number 0; slices count from 1.
        after = [dict(enumerate(sequence.after, start=slices > 1)) for sequence in sequences]
        if slices > 1:
            for lane, sequence in zip(lanes, sequences, strict=True):
                lane.carried_bytes = sequence.carried_bytes
    for lane, scores_after in zip(lanes, after, strict=True):
        lane.after, lane.seconds = scores_after, (time.perf_counter() - started) / len(lanes)
        lane.report(lane.scored(0))


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
    return table
