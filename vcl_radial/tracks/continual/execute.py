"""Carrying one run out in its folder: resume, checkpoint after every task, finish."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from vcl_radial.errors import UserError
from vcl_radial.runs.environment import engines_with, loaded, tell_if_mixed
from vcl_radial.runs.folder import DamagedCheckpoint, RunFolder, discard_damaged
from vcl_radial.runs.place import Place
from vcl_radial.tracks.continual.specification import Run

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.tracks.continual.training import ContinualRun


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


def execute(run: Run, place: Place, tell: Callable[[Event], None]) -> None:
    """Carry a run out, going on from its checkpoint where there is one.

    Raises:
        UserError: something the user can mend; what was finished stays.
        Diverged: the loss stopped being a finite number.
    """
    import torch

    from vcl_radial.tracks.continual.training import ContinualRun

    loaded()  # the commit, before anybody makes another
    # More threads than cores would fight; the count is part of what makes the bytes the same.
    torch.set_num_threads(place.threads)
    # An ended run is a cycle of few objects that holds all its data: not collected by itself, the
    # runs of a long search add up to gigabytes.
    gc.collect()
    folder = RunFolder(place.out, run)

    def on_epoch(task: int, epoch: int) -> None:
        tell(event("epoch", task, run.recipe.epochs_until(task - 1) + epoch))

    track = ContinualRun(
        run.stream,
        run.recipe,
        run.seed,
        evaluate_on=run.evaluate_on,
        data_dir=place.data_dir,
        device=place.device,
        on_epoch=on_epoch,
    )
    total = run.recipe.epochs_until(track.trainings)

    def event(
        kind: Literal["start", "epoch", "task"],
        task: int,
        epoch: int,
        accuracy: float | None = None,
    ) -> Event:
        return Event(kind, task, track.tasks, epoch, total, accuracy)

    def epochs_done() -> int:
        return min(run.recipe.epochs_until(track.tasks_done), total)

    folder.start()  # only now: a spec that does not fit its data leaves no folder behind
    go_on(folder, track, track.device_name)
    tell(event("start", track.tasks_done, epochs_done()))
    with _logged(track, folder, place.log) as log_task:
        for done in track.finish_tasks():
            log_task()
            folder.save_checkpoint(track.state_dict())
            tell(event("task", done, epochs_done(), track.average_accuracy()))
    finish(folder, track, place, track.stream.task_names)


@contextmanager
def _logged(
    track: ContinualRun, folder: RunFolder[Run], loggers: Sequence[str]
) -> Iterator[Callable[[], None]]:
    """Log a run into its folder where there are loggers; gives what to call after a task."""
    if not loggers:
        yield lambda: None
        return
    from vcl_radial.tracks.continual.loggers import logged

    run = folder.run
    name = f"{run.benchmark}/{run.method}/seed-{run.seed}"
    with logged(track, loggers, folder.path, name, run.settings()) as log_task:
        yield log_task


class Resumable(Protocol):
    """A run in progress that can be stored, and whose scores are a tidy table."""

    seconds: dict[str, float]

    @property
    def parameters(self) -> int:
        """How many numbers the network trains."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a stored state."""

    def accuracy(self) -> pd.DataFrame:
        """The scores so far."""

    def movement(self) -> pd.DataFrame:
        """How far the posterior of each layer went in each task; empty where there is none."""


def go_on(folder: RunFolder[Run], run: Resumable, device: str) -> None:
    """Load the folder's checkpoint where there is one; a damaged one is thrown away.

    Args:
        folder: told what the run is computed with; so is the user where that is not one thing.
        run: to go on with.
        device: of this process, in words.

    Raises:
        UserError: it does not fit.
    """
    try:
        state = folder.load_checkpoint()
    except DamagedCheckpoint:
        discard_damaged(folder.checkpoint)
        state = None
    folder.engines = engines_with(folder.engines, device)
    if state is None:
        return
    tell_if_mixed(folder.checkpoint, folder.engines)
    try:
        run.load_state_dict(state)
    except Exception as error:  # the code of a user's strategy may have changed in any way
        raise UserError(
            f"{folder.checkpoint}: does not fit the code as it is now "
            f"({' '.join(str(error).split())}); delete it to run this seed from its start"
        ) from error


def finish(folder: RunFolder[Run], run: Resumable, place: Place, tasks: Sequence[str]) -> None:
    """Write a finished run's result files."""
    from vcl_radial.metrics import summary
    from vcl_radial.runs import environment

    tidy = run.accuracy()
    scores = summary(tidy, multi_head=folder.run.stream.multi_head)
    where = environment.describe(place.device, place.threads, folder.commits)
    layers = run.movement()
    folder.finish(
        ({} if layers.empty else {"layers.csv": layers.to_csv(index=False)})
        | {
            "accuracy.csv": tidy.to_csv(index=False),
            "metrics.json": json.dumps(scores, indent=2) + "\n",
            "environment.json": json.dumps(
                where
                | environment.of_engines(folder.engines)
                | {
                    "tasks": list(tasks),
                    "parameters": run.parameters,
                    "seconds": run.seconds,
                    "finished": _timestamp(),
                    "command": place.command,
                },
                indent=2,
            )
            + "\n",
        }
    )


def _timestamp() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
