"""Carry out a sweep: ask for trials, run them and collect their results.

After any interruption the same command resumes: it asks for the same trials in the same order, and
reads results from the folders of their runs. An unfinished run resumes from its last finished step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import Job, PruningThreshold, RunOutcome
from vcl_radial.runs.executor import Executor
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.training import Step
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.outcome import ended, result, run_fault
from vcl_radial.sweeps.progress import Progress
from vcl_radial.sweeps.study import Result, Study, Trial

MOST_DEATHS = 3
"""Number of times that the process of a run may die at the same step before the run fails."""


class OpenTrial:
    """A trial with unfinished runs.

    Attributes:
        has_run: whether this command has carried out one of its runs.
    """

    def __init__(self, study: Study, trial: Trial, folder: SweepFolder) -> None:
        self.study, self.trial = study, trial
        self.runs = trial.runs
        self.folders: dict[int, RunFolder[Any]] = {run.seed: folder.run(run) for run in self.runs}
        self.ends: dict[int, RunOutcome] = {}
        self.has_run = False

    def thresholds(self, run: RunSpec) -> tuple[PruningThreshold, ...]:
        """The pruning thresholds of a run; only the run of the first seed has thresholds."""
        return self.trial.thresholds if run.seed == self.runs[0].seed else ()

    def take_ended(self, taken: set[Path]) -> None:
        """Read the outcomes of runs from their folders, except from folders in use."""
        for run in self.runs:  # in order: the first seed decides whether others start
            if run in self.missing() and self.folders[run.seed].path not in taken:
                end = ended(self.folders[run.seed], self.thresholds(run))
                if end is not None:
                    self.ends[run.seed] = end

    def missing(self) -> list[RunSpec]:
        """Runs without an outcome, which run or can start now.

        With pruning the first seed runs alone, as its scores decide whether the other seeds start.
        After a run that did not finish the trial has no score, and no later seed starts.
        """
        alone = self.trial.plan.sweep.pruning is not None and self.runs[0].seed not in self.ends
        missing = []
        for run in self.runs:
            end = self.ends.get(run.seed)
            if end is None:
                missing.append(run)
            if alone or (end is not None and end.status != "finished"):
                break
        return missing

    def result(self) -> Result | None:
        """The result of the trial; None while runs are left."""
        return None if self.missing() else result(self.trial, self.ends, self.folders)


class Driver:
    """Submits the runs of trials to an executor until the budget is spent.

    Args:
        studies: the studies of the sweep; they take turns.
        folder: the folder of the sweep.
        lanes: runs of one shape that train together as one job.
        progress: the progress display.
    """

    def __init__(
        self,
        studies: Sequence[Study],
        folder: SweepFolder,
        lanes: int,
        progress: Progress,
    ) -> None:
        self.studies, self.folder, self.lanes = studies, folder, lanes
        self.progress = progress
        self._open: list[OpenTrial] = []
        self._running: dict[Path, OpenTrial] = {}
        self._deaths: Counter[tuple[Path, int]] = Counter()
        self._steps_done: dict[Path, int] = {}
        self._hours = studies[0].plan.sweep.hours
        self._seconds, self._asked_before = folder.read_spent()
        self._table_is_old = True
        self._last = time.monotonic()  # independent of changes of the clock

    def carry_out(self, executor: Executor) -> None:
        """Carry out all trials.

        Raises:
            UserError: the machine stops runs (for example a full disk).
        """
        try:
            while True:
                while executor.room() > 0 and (job := self._next_job()):
                    executor.submit(job)
                self._write()
                if not self._running:
                    break
                for end in executor.wait():
                    self._take(end)
                now = time.monotonic()
                self._seconds, self._last = self._seconds + now - self._last, now
            for study in self.studies:
                study.close()
            self.progress.print_kept()
        finally:
            executor.close()
            self.folder.write_trials(self.studies)

    def on_step(self, run: RunSpec, step: Step) -> None:
        """Record and show the progress of a run."""
        path = self.folder.run(run).path
        self._steps_done[path] = step.done
        if path in self._running:
            self.progress.show(self._running[path].trial, run, step)

    def _next_job(self) -> Job | None:
        """The next runs to start; ask for new trials only when there is room for them."""
        while True:
            ready = list(self._ready())
            self._settle()
            if len(ready) >= self.lanes or not self._ask():
                break
        if not ready:
            return None
        track = self.studies[0].plan.track
        chosen = track.batches([run for run, _ in ready], self.lanes)[0]
        trial_of = {self.folder.run(run).path: trial for run, trial in ready}
        for run in chosen:
            folder = self.folder.run(run)
            fault = run_fault(folder)
            if fault not in (None, "not finished"):
                self.progress.note(f"{fault}: this run is repeated")
            trial = self._running[folder.path] = trial_of[folder.path]
            trial.has_run = True
        return Job(tuple(chosen), trial.thresholds(chosen[0]), discard_unusable=True)

    def _ready(self) -> Iterator[tuple[RunSpec, OpenTrial]]:
        """Runs that can start now, one per folder, even if two trials share a run."""
        taken = set(self._running)
        for trial in sorted(self._open, key=lambda trial: trial.trial.number):
            trial.take_ended(taken)
            for run in trial.missing():
                path = trial.folders[run.seed].path
                if path not in taken:
                    taken.add(path)
                    yield run, trial

    def _ask(self) -> bool:
        """Ask the study with the fewest trials for another one."""
        able = [study for study in self.studies if study.may_ask() and self._has_time(study)]
        if not able:
            return False
        study = min(able, key=lambda study: len(study.trials))
        self._open.append(OpenTrial(study, study.ask(), self.folder))
        return True

    def _has_time(self, study: Study) -> bool:
        """Whether hours are left; trials from before an interruption are always requested again."""
        before = self._asked_before.get(study.plan.label, 0)
        spent = self._hours is not None and self._seconds >= 3600 * self._hours
        return not spent or len(study.trials) < before

    def _settle(self) -> None:
        """Collect the results of complete trials."""
        complete = [(trial, final) for trial in self._open if (final := trial.result())]
        for trial, final in complete:
            self._open.remove(trial)
            self._table_is_old = True
            trial.study.end(trial.trial.number, final)
            self.progress.end(trial.study, trial.trial.number, kept=not trial.has_run)

    def _write(self) -> None:
        """Write the progress of the sweep to its folder."""
        if self._hours is not None:
            asked = {study.plan.label: len(study.trials) for study in self.studies}
            self.folder.write_spent(self._seconds, asked)
        if self._table_is_old:
            self.folder.write_trials(self.studies)
            self._table_is_old = False

    def _take(self, end: RunOutcome) -> None:
        """Collect the outcome of a run."""
        folder = self.folder.run(end.run)
        trial = self._running.pop(folder.path)
        if end.status in ("blocked", "elsewhere"):
            raise UserError(f"{end.fault} (the sweep has stopped; the same command resumes)")
        by_folder = ended(folder, trial.thresholds(end.run))
        if by_folder is not None:
            end = by_folder
        elif end.status == "finished":
            end = RunOutcome(end.run, "lost", f"{folder.path}: {run_fault(folder)}")
        if end.status == "lost":
            where = (folder.path, self._steps_done.get(folder.path, 0))
            self._deaths[where] += 1
            if self._deaths[where] < MOST_DEATHS:
                self.progress.note(f"{folder.path}: {end.fault}; its run is retried")
                return
            end = RunOutcome(end.run, "failed", f"{end.fault}, {MOST_DEATHS} times")
        trial.ends[end.run.seed] = end
