"""What a sweep shows: a line for each trial that ended and, on a terminal, bars."""

from __future__ import annotations

from collections.abc import Sequence

from vcl_radial.runs.progress import Lines
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Step
from vcl_radial.sweeps.study import Study, Trial


class Progress(Lines):
    """Show a sweep as it goes on.

    Args:
        studies: what is searched.
        where: the sweep's folder, in words.
        how: runs are carried out, in words.
    """

    def __init__(self, studies: Sequence[Study], where: str, how: str) -> None:
        super().__init__("trials")
        self._studies = studies
        self._kept = 0
        sweep, totals = studies[0].plan.sweep, [study.plan.trials for study in studies]
        self._total = None if None in totals else sum(filter(None, totals))
        labels = list(dict.fromkeys(study.plan.label for study in studies))
        self.say(
            f"{studies[0].plan.name}: {sweep.kind} search for {sweep.objective} on "
            f"{', '.join(labels)}; {number_of('trial', self._total)} of "
            f"{number_of('seed', sweep.seeds)}, {how}"
        )
        self.say(f"in {where}")

    def show(self, trial: Trial, run: RunSpec, step: Step) -> None:
        """Show how far a run of a trial has come."""
        words = f"{run.method} trial {trial.number} seed {run.seed}: {step.words}"
        self.bar("", words, self._ended, self._total)

    def end(self, study: Study, number: int, kept: bool) -> None:
        """Show what came of a trial; of those that ended before, only how many they are."""
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
        self.note(f"{study.plan.label} trial {number}: {words}  [{count}]")
        self.bar("", "trials", self._ended, self._total)

    def note(self, words: str) -> None:
        """Show that something happened."""
        self.say_kept()
        self.say(words)

    def say_kept(self) -> None:
        """Show how many trials were kept from before, once."""
        if self._kept:
            self.say(f"{number_of('trial', self._kept)} kept from before")
            self._kept = 0

    @property
    def _ended(self) -> int:
        return sum(len(study.results) for study in self._studies)


def number_of(what: str, count: int | None) -> str:
    """So many of them, in words; their name alone where it is not known how many."""
    if count is None:
        return f"{what}s"
    return f"{count} {what}{'' if count == 1 else 's'}"
