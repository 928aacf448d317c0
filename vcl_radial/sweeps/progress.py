"""Show the progress of a sweep: a line per trial that has ended and, on a terminal, bars."""

from __future__ import annotations

from collections.abc import Sequence

from vcl_radial.runs.progress import Lines
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.training import Step
from vcl_radial.sweeps.study import Study, Trial


class Progress(Lines):
    """Shows the progress of a sweep.

    Args:
        studies: the studies of the sweep.
        where: the folder of the sweep.
        how: how runs are carried out, for the first line.
    """

    def __init__(self, studies: Sequence[Study], where: str, how: str) -> None:
        super().__init__("trials")
        self._studies = studies
        self._kept = 0
        sweep, totals = studies[0].plan.sweep, [study.plan.trials for study in studies]
        self._total = None if None in totals else sum(filter(None, totals))
        labels = list(dict.fromkeys(study.plan.label for study in studies))
        self.print(
            f"{studies[0].plan.name}: {sweep.kind} search for {sweep.objective} on "
            f"{', '.join(labels)}; {number_of('trial', self._total)} of "
            f"{number_of('seed', sweep.seeds)}, {how}"
        )
        self.print(f"in {where}")

    def show(self, trial: Trial, run: RunSpec, step: Step) -> None:
        """Show the progress of a run of a trial."""
        text = f"{run.method} trial {trial.number} seed {run.seed}: {step.message}"
        self.bar("", text, self._ended, self._total)

    def end(self, study: Study, number: int, kept: bool) -> None:
        """Show the result of a trial; trials of earlier commands are only counted."""
        if kept:
            self._kept += 1
            return
        result = study.results[number]
        text = result.text or f"{result.outcome} ({result.words})"
        best = study.best()
        if best is not None:
            text += f"  best {study.results[best].score:.4g} (trial {best})"
        total = study.plan.trials
        count = f"{len(study.results)}" + (f" of {total}" if total is not None else "")
        self.note(f"{study.plan.label} trial {number}: {text}  [{count}]")
        self.bar("", "trials", self._ended, self._total)

    def note(self, text: str) -> None:
        """Print a line about an event."""
        self.print_kept()
        self.print(text)

    def print_kept(self) -> None:
        """Print the number of trials that were kept from before, once."""
        if self._kept:
            self.print(f"{number_of('trial', self._kept)} kept from before")
            self._kept = 0

    @property
    def _ended(self) -> int:
        return sum(len(study.results) for study in self._studies)


def number_of(noun: str, count: int | None) -> str:
    """A count with its noun, as in "3 trials"; the noun alone if the count is not known."""
    if count is None:
        return f"{noun}s"
    return f"{count} {noun}{'' if count == 1 else 's'}"
