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

from vcl_radial.runs.attempt import How
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Step


class Progress:
    """Show runs as they go on.

    Args:
        runs: the runs to be carried out.
        epochs: of each of them, as far as is known before it starts.
        jobs: how many at a time.
        kept: how many were finished before.
    """

    def __init__(
        self, runs: Sequence[RunSpec], epochs: Sequence[int], jobs: int, kept: int = 0
    ) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._width = max(len(run.label) for run in runs)
        self._started: dict[str, float] = {}
        self._ended, self._total = 0, len(runs)
        self._bars: Bars | None = None
        self._bar_of: dict[str, TaskID] = {}
        # Epochs done and to come, by run: what the bar over all runs adds up.
        self._done = dict.fromkeys([run.label for run in runs], 0)
        self._to_come = dict(zip([run.label for run in runs], epochs, strict=True))
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

    def show(self, run: RunSpec, step: Step) -> None:
        """Show how far a run has come."""
        name = run.label
        first = name not in self._started
        if first:
            self._started[name] = time.monotonic()
        self._done[name], self._to_come[name] = step.epoch, step.epochs
        if step.news is not None and (first or self._bars is None):
            seconds = "" if first else f"  {self._seconds(name)}"
            self._say(f"{name:{self._width}}  {step.news}{seconds}")
        if self._bars:
            self._show_bars(name, step)

    def end(self, run: RunSpec, how: How) -> None:
        """Show that a run has ended, or is left to another command that is at work on it."""
        name = run.label
        self._ended += 1
        self._done[name] = self._to_come[name]
        if self._bars and name in self._bar_of:
            self._bars.remove_task(self._bar_of.pop(name))
        words_of = {"finished": f"done in {self._seconds(name)}"}
        words_of["elsewhere"] = "left to another command"
        words = words_of.get(how, "FAILED")
        self._say(f"{name:{self._width}}  {words}  [{self._ended} of {self._total}]")

    def _show_bars(self, name: str, step: Step) -> None:
        assert self._bars is not None
        if name not in self._bar_of:
            self._bar_of[name] = self._bars.add_task("")
        words = f"{name:{self._width}}  {step.words}"
        self._bars.update(
            self._bar_of[name], description=words, completed=step.epoch, total=step.epochs
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
