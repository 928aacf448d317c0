"""Show progress: bars with the time left on a terminal, one bar in a notebook, else lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TextIO, cast

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from vcl_radial.errors import visible
from vcl_radial.runs.attempt import Status
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.training import Step
from vcl_radial.system.output import Visible, terminal


class Lines:
    """Prints lines and shows, on a terminal below them, a bar per run and one for all runs.

    A notebook shows only the bar for all runs.

    Args:
        unit: the unit that a bar counts.
    """

    def __init__(self, unit: str) -> None:
        self._in_notebook = Console().is_jupyter
        self._console = Console(
            file=terminal(sys.stdout), highlight=False, soft_wrap=True, force_jupyter=False
        )
        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=self._console,
            disable=not self.on_terminal,
        )
        self._unit = unit
        self._bar_of: dict[str, TaskID] = {}
        self._shown: Any = None

    def __enter__(self) -> Self:
        self.bars.start()
        if self.on_terminal:  # the bars handle printed text until they stop
            sys.stdout, sys.stderr = (cast("TextIO", Visible(s)) for s in (sys.stdout, sys.stderr))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bars.stop()

    @property
    def on_terminal(self) -> bool:
        """Whether the output is a terminal."""
        return self._console.is_terminal

    @property
    def has_bars(self) -> bool:
        """Whether bars show the progress, so that lines need not."""
        return self.on_terminal or self._in_notebook

    def print(self, text: str) -> None:
        """Print a line."""
        self._console.print(visible(text), markup=False)

    def bar(self, name: str, text: str, done: int, total: int | None) -> None:
        """Set the bar with this name; the first call adds it."""
        if name not in self._bar_of:
            self._bar_of[name] = self.bars.add_task("")
        self.bars.update(self._bar_of[name], description=visible(text), completed=done, total=total)
        if self._in_notebook and not name:
            self._show_in_notebook(self.bars.tasks[0])

    def _show_in_notebook(self, task: Task) -> None:
        """Draw the bar for all runs, which was added first, in the output of the cell."""
        from html import escape

        from IPython.display import HTML, display

        total = task.total or 0
        left = "" if task.time_remaining is None else f", {task.time_remaining:.0f} s left"
        text = f"{task.description}: {task.completed:g} of {total:g} {self._unit}{left}"
        bar = f'<progress value="{task.completed}" max="{total}"></progress> {escape(text)}'
        if self._shown is None:
            self._shown = display(HTML(bar), display_id=True)
        else:
            self._shown.update(HTML(bar))

    def drop(self, name: str) -> None:
        """Remove the bar with this name."""
        if name in self._bar_of:
            self.bars.remove_task(self._bar_of.pop(name))


class Progress(Lines):
    """Shows the progress of runs.

    Args:
        runs: the runs to be carried out.
        epochs: number of epochs per run, as far as it is known before the run starts.
        how: how the runs are carried out, for the first line.
        kept: number of runs that were finished before.
        unit: the unit that replaces epochs.
    """

    def __init__(
        self,
        runs: Sequence[RunSpec],
        epochs: Sequence[int],
        how: str,
        kept: int = 0,
        unit: str = "epochs",
    ) -> None:
        super().__init__(unit)
        self._width = max(len(run.label) for run in runs)
        self._started: dict[str, float] = {}
        self._methods: set[str] = set()
        self._ended, self._total = 0, len(runs)
        # Epochs done and in total, by run: the bar for all runs shows their sums.
        self._done = dict.fromkeys([run.label for run in runs], 0)
        self._epochs = dict(zip([run.label for run in runs], epochs, strict=True))
        kept_text = f", {kept} kept from before" if kept else ""
        self.print(
            f"{runs[0].benchmark}: {len(runs)} run{'s' * (len(runs) > 1)} to do, {how}{kept_text}"
        )
        self.bar("", "starting", 0, sum(epochs))

    def show(self, run: RunSpec, step: Step) -> None:
        """Show the progress of a run."""
        name = run.label
        first = name not in self._started
        if first:
            self._started[name] = time.monotonic()
        if step.start and run.method not in self._methods:
            self._methods.add(run.method)
            for line in step.start:
                self.print(f"{run.method}  {line}")
        self._done[name], self._epochs[name] = step.epoch, step.epochs
        if step.news is not None and (first or not self.has_bars):
            seconds = "" if first else f"  {self._seconds(name)}"
            self.print(f"{name:{self._width}}  {step.news}{seconds}")
        text = f"{name:{self._width}}  {step.message}"
        self.bar(name, text, step.epoch, step.epochs)
        self._show_all()

    def _show_all(self) -> None:
        """Set the bar for all runs."""
        self.bar("", "all runs", sum(self._done.values()), sum(self._epochs.values()))

    def end(self, run: RunSpec, status: Status) -> None:
        """Show that a run has ended, or is left to another command that is running it."""
        name = run.label
        self._ended += 1
        self._done[name] = self._epochs[name]
        self.drop(name)
        self._show_all()
        done = f"done in {self._seconds(name)}" if name in self._started else "done"
        text = {"finished": done, "elsewhere": "left to another command"}.get(status, "FAILED")
        self.print(f"{name:{self._width}}  {text}  [{self._ended} of {self._total}]")

    def _seconds(self, name: str) -> str:
        seconds = round(time.monotonic() - self._started[name])
        return f"{seconds // 60}:{seconds % 60:02}"


def duration(seconds: float) -> str:
    """An estimated time in seconds, minutes or hours."""
    if seconds < 60:
        return f"{max(seconds, 0.1):.1f} seconds"
    return f"{seconds / 3600:,.1f} hours" if seconds > 3600 else f"{seconds / 60:.1f} minutes"
