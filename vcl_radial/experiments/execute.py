"""Carrying one run out in its folder: resume, checkpoint after every task, finish."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from vcl_radial.errors import UserError
from vcl_radial.experiments.run_folder import RunFolder
from vcl_radial.experiments.specification import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Event:
    """How far a run has come.

    Attributes:
        kind: "start" (`total` epochs are to come), "epoch", or "task" (trained and scored).
        task: tasks done, or the task at work (from 1).
        epoch: epochs done, over all tasks.
        total: epochs of the whole run.
        accuracy: after a task: the average over the tasks seen, in per cent.
    """

    kind: Literal["start", "epoch", "task"]
    task: int
    tasks: int
    epoch: int
    total: int
    accuracy: float | None = None


@dataclass(frozen=True)
class Place:
    """Where a run computes, reads and writes."""

    out: Path
    data_dir: Path | None = None
    device: str = "cpu"
    threads: int = 1


def execute(run: Run, place: Place, tell: Callable[[Event], None]) -> None:
    """Carry a run out, going on from its checkpoint where there is one.

    Raises:
        UserError: something the user can mend; what was finished stays.
        Diverged: the loss stopped being a finite number.
    """
    import torch

    from vcl_radial.tracks.continual import ContinualRun

    # More threads than cores would fight; the count is part of what makes the bytes the same.
    torch.set_num_threads(place.threads)
    folder = RunFolder(place.out, run)

    def on_epoch(task: int, epoch: int) -> None:
        tell(event("epoch", task, (task - 1) * run.recipe.epochs + epoch))

    track = ContinualRun(
        run.stream,
        run.recipe,
        run.seed,
        evaluate_on=run.evaluate_on,
        data_dir=place.data_dir,
        device=place.device,
        on_epoch=on_epoch,
    )
    total = run.recipe.epochs * track.trainings

    def event(
        kind: Literal["start", "epoch", "task"],
        task: int,
        epoch: int,
        accuracy: float | None = None,
    ) -> Event:
        return Event(kind, task, track.tasks, epoch, total, accuracy)

    def epochs_done() -> int:
        return min(track.tasks_done * run.recipe.epochs, total)

    folder.start()  # only now: a spec that does not fit its data leaves no folder behind
    go_on(folder, track)
    tell(event("start", track.tasks_done, epochs_done()))
    for done in track.finish_tasks():
        folder.save_checkpoint(track.state_dict())
        tell(event("task", done, epochs_done(), track.average_accuracy()))
    finish(folder, track, track.device_name, place.threads, track.stream.task_names)


class Resumable(Protocol):
    """A run in progress that can be stored, and whose scores are a tidy table."""

    seconds: dict[str, float]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a stored state."""

    def accuracy(self) -> pd.DataFrame:
        """The scores so far."""


def go_on(folder: RunFolder, run: Resumable) -> None:
    """Load the folder's checkpoint where there is one.

    Raises:
        UserError: it is damaged, or does not fit.
    """
    if (state := folder.load_checkpoint()) is None:
        return
    try:
        run.load_state_dict(state)
    except Exception as error:  # the code of a user's strategy may have changed in any way
        raise UserError(
            f"{folder.checkpoint}: does not fit the code as it is now "
            f"({' '.join(str(error).split())}); delete it to run this seed from its start"
        ) from error


def finish(
    folder: RunFolder, run: Resumable, device: str, threads: int, tasks: Sequence[str]
) -> None:
    """Write a finished run's result files."""
    from vcl_radial.experiments import environment
    from vcl_radial.metrics import summary

    tidy = run.accuracy()
    where = environment.describe(device, threads)
    folder.finish(
        {
            "accuracy.csv": tidy.to_csv(index=False),
            "metrics.json": json.dumps(summary(tidy), indent=2) + "\n",
            "environment.json": json.dumps(
                where | {"tasks": list(tasks), "seconds": run.seconds, "finished": _timestamp()},
                indent=2,
            )
            + "\n",
        }
    )


def _timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
