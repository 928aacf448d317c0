"""Runs of one shape as lanes of one program, whose second task is trained again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.speed.setting import Images
from benchmarks.speed.timing import Clock
from benchmarks.speed.training import BENCHMARK, epochs_to_fill
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.lane_runs import LaneRuns
from vcl_radial.tracks.continual.specification import Run

METHOD = "radial-vcl"


class LaneTraining:
    """The second task of runs of one shape, trained again and again as lanes of one program.

    Args:
        runs: one for each lane.
        images: the data.
        device: of the networks and the data.
        clock: for the ends of epochs.
    """

    def __init__(self, runs: Sequence[Run], images: Images, device: str, clock: Clock) -> None:
        self._clock = clock
        self._epoch_ends: list[float] = []
        self.epoch_seconds: list[float] = []
        """Of every call of `train`: the seconds of one of its epochs, all lanes together."""
        self.together = LaneRuns(
            runs[0].stream,
            [run.recipe for run in runs],
            [run.seed for run in runs],
            data_dir=images.folder,
            device=device,
            on_epoch=self._on_epoch,
        )
        self._finish_a_task()

    def set_epochs(self, epochs: int) -> None:
        """Train for so many epochs from now on, at least two."""
        for lane in self.together.lanes:
            lane.recipe = lane.recipe.model_copy(update={"epochs": epochs})

    def fill(self, seconds: float) -> None:
        """Train once as a warm-up, and let a call last so long from now on."""
        self.train()
        self.set_epochs(epochs_to_fill(seconds, self.epoch_seconds[-1]))

    def train(self) -> None:
        """Train the second task once more in every lane."""
        for lane in self.together.lanes:
            lane.tasks_done = 1
        self._epoch_ends.clear()
        self._finish_a_task()
        ends = self._epoch_ends
        self.epoch_seconds.append((ends[-1] - ends[0]) / (len(ends) - 1))

    def _finish_a_task(self) -> None:
        next(self.together.finish_tasks())
        for lane in self.together.lanes:
            if lane.fault is not None:
                raise lane.fault

    def _on_epoch(self, lane: int, task: int, epoch: int) -> None:
        if lane == 0:
            self._epoch_ends.append(self._clock())


def runs_of(count: int, images: Images, keys: Mapping[str, Any]) -> list[Run]:
    """Runs that differ in their seed."""
    return plan(BENCHMARK, [METHOD], range(count), {"stream.dataset": images.dataset, **keys})
