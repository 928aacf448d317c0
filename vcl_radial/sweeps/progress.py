"""What a sweep shows: a line for each trial that ended and, on a terminal, a bar."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Step
from vcl_radial.sweeps.study import Study, Trial


class Progress:
    """Show a sweep as it goes on.

    Args:
        studies: what is searched.
        where: the sweep's folder, in words.
        jobs: how many at a time, in words.
    """

    def __init__(self, studies: Sequence[Study], where: str, jobs: str) -> None:
        self._studies = studies
        self._console = Console(highlight=False, soft_wrap=True)
        sweep = studies[0].plan.sweep
        self._kept = 0
        self._say(
            f"{studies[0].plan.name}: {sweep.kind} search for {sweep.objective} on "
            f"{', '.join(study.plan.label for study in studies)}; "
            f"{_number(_total(studies), 'trial')} of {_number(sweep.seeds, 'seed')}, {jobs}"
        )
        self._say(f"in {where}")
        self._bars = Bars(
            TextColumn("trials"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("left  {task.description}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._bars.add_task("", total=_total(studies))

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
        if kind is None and self._kept:
            self._say("no other trials to do")

    def show(self, trial: Trial, run: RunSpec, step: Step) -> None:
        """Show how far a run of a trial has come."""
        words = f"{run.method} trial {trial.number} seed {run.seed}: {step.words}"
        self._bars.update(self._bar, description=words)

    def end(self, study: Study, number: int, kept: bool) -> None:
        """Show what came of a trial; of those that ended before, only how many they are."""
        self._bars.advance(self._bar)
        if kept:
            self._kept += 1
            return
        result = study.results[number]
        if result.score is None:
            words = f"{result.outcome} ({result.words})"
        else:
            spread = "" if result.standard_error is None else f" ± {result.standard_error:.3g}"
            words = f"{result.score:.4g}{spread}"
        best = study.best()
        if best is not None:
            words += f"  best {study.results[best].score:.4g} (trial {best})"
        total = study.plan.trials
        count = f"{len(study.results)}" + (f" of {total}" if total is not None else "")
        self._say(f"{study.plan.label} trial {number}: {words}  [{count}]")

    def note(self, words: str) -> None:
        """Show that something happened."""
        self._say(words)

    def _say(self, words: str) -> None:
        if self._kept:
            kept, self._kept = self._kept, 0
            self._say(f"{_number(kept, 'trial')} kept from before")
        self._console.print(words, markup=False)


def _total(studies: Sequence[Study]) -> int | None:
    totals = [study.plan.trials for study in studies]
    return None if None in totals else sum(total for total in totals if total is not None)


def _number(count: int | None, what: str) -> str:
    if count is None:
        return f"{what}s"
    return f"{count} {what}{'' if count == 1 else 's'}"
