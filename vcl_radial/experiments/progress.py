"""Progress: bars with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from vcl_radial.experiments.execute import Event
from vcl_radial.experiments.specification import Run


class Progress:
    """Show runs as they go on.

    Args:
        runs: the runs to be carried out.
        jobs: how many at a time.
        kept: how many were finished before.
    """

    def __init__(self, runs: Sequence[Run], jobs: int, kept: int = 0) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._width = max(len(_name(run)) for run in runs)
        self._started: dict[str, float] = {}
        self._ended, self._total = 0, len(runs)
        self._bars: Bars | None = None
        self._bar_of: dict[str, TaskID] = {}
        # Epochs done and to come, by run: what the bar over all runs adds up.
        self._done = dict.fromkeys(map(_name, runs), 0)
        self._to_come = {_name(run): run.recipe.epochs_until(run.stream.tasks) for run in runs}
        kept_words = f", {kept} kept from before" if kept else ""
        self._say(
            f"{runs[0].benchmark}: {len(runs)} run{'s' * (len(runs) > 1)} to do, "
            f"{jobs} at a time{kept_words}"
        )
        if self._console.is_terminal:
            self._bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(bar_width=12),
                MofNCompleteColumn(),
                TextColumn("epochs"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=self._console,
            )
            self._all = self._bars.add_task("starting", total=sum(self._to_come.values()))

    def __enter__(self) -> Progress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars:
            self._bars.stop()

    def show(self, run: Run, event: Event) -> None:
        """Show what a run tells."""
        name = _name(run)
        if event.kind == "start":
            self._started[name] = time.monotonic()
            if event.task:
                self._say(f"{name}  goes on after task {event.task} of {event.tasks}")
        self._done[name], self._to_come[name] = event.epoch, event.total
        if self._bars:
            self._show_bars(name, event)
        elif event.kind == "task":
            self._say(
                f"{name:{self._width}}  task {event.task} of {event.tasks}  average accuracy "
                f"{event.accuracy:6.2f} %  {self._seconds(name)}"
            )

    def end(self, run: Run, fault: str | None, elsewhere: bool = False) -> None:
        """Show that a run has ended, or is left to another command that is at work on it."""
        name = _name(run)
        self._ended += 1
        self._done[name] = self._to_come[name]
        if self._bars and name in self._bar_of:
            self._bars.remove_task(self._bar_of.pop(name))
        how = f"done in {self._seconds(name)}"
        if fault is not None:
            how = "left to another command" if elsewhere else "FAILED"
        self._say(f"{name:{self._width}}  {how}  [{self._ended} of {self._total}]")

    def _show_bars(self, name: str, event: Event) -> None:
        assert self._bars is not None
        if name not in self._bar_of:
            self._bar_of[name] = self._bars.add_task("")
        at_work = event.task if event.kind == "epoch" else min(event.task + 1, event.tasks)
        words = f"{name:{self._width}}  task {at_work} of {event.tasks}"
        self._bars.update(
            self._bar_of[name], description=words, completed=event.epoch, total=event.total
        )
        self._bars.update(
            self._all,
            description="all runs",
            completed=sum(self._done.values()),
            total=sum(self._to_come.values()),
        )

    def _seconds(self, name: str) -> str:
        seconds = round(time.monotonic() - self._started.get(name, time.monotonic()))
        return f"{seconds // 60}:{seconds % 60:02}"

    def _say(self, words: str) -> None:
        self._console.print(words, markup=False)


def _name(run: Run) -> str:
    return f"{run.method} seed {run.seed}"
