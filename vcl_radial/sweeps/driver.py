"""A sweep carried out: trials asked for, their runs done, and what came of them taken.

Whatever stops it, the same command goes on: at its start it asks for the same trials in the same
order, and takes what came of them from the folders of their runs. What was under way is at its last
finished step.
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
from vcl_radial.runs.track import Step
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.outcome import ended, result, run_fault
from vcl_radial.sweeps.progress import Progress
from vcl_radial.sweeps.study import Result, Study, Trial

MOST_DEATHS = 3
"""So often may the process of a run die without getting a step further."""


class OpenTrial:
    """A trial of which not all is done yet.

    Attributes:
        worked: whether a run of it was carried out this time.
    """

    def __init__(self, study: Study, trial: Trial, folder: SweepFolder) -> None:
        self.study, self.trial = study, trial
        self.runs = trial.runs
        self.folders: dict[int, RunFolder[Any]] = {run.seed: folder.run(run) for run in self.runs}
        self.under_way: set[int] = set()
        self.ends: dict[int, RunOutcome] = {}
        self.worked = False

    def thresholds(self, run: RunSpec) -> tuple[PruningThreshold, ...]:
        """Of one of its runs: the first seed alone is ever given up."""
        return self.trial.thresholds if run.seed == self.runs[0].seed else ()

    def take_ended(self, taken: set[Path]) -> None:
        """Take how runs ended from their folders, except from folders where work is under way."""
        for run in self.runs:  # in this order: the first seed may let the others begin
            if run in self.startable() and self.folders[run.seed].path not in taken:
                end = ended(self.folders[run.seed], self.thresholds(run))
                if end is not None:
                    self.ends[run.seed] = end

    def startable(self) -> list[RunSpec]:
        """Runs that could begin now.

        Where hopeless trials are given up, the first seed goes ahead: it alone decides. After a
        run that did not finish there is no score to be had, and no later seed begins.
        """
        scout = self.trial.plan.sweep.pruning is not None and self.runs[0].seed not in self.ends
        startable = []
        for run in self.runs:
            end = self.ends.get(run.seed)
            if end is None and run.seed not in self.under_way:
                startable.append(run)
            if scout or (end is not None and end.status != "finished"):
                break
        return startable

    def result(self) -> Result | None:
        """What came of it, once nothing is left to be done."""
        if self.under_way or self.startable():
            return None
        return result(self.trial, self.ends, self.folders)


class Driver:
    """Gives the runs of trials to an executor until the budget is spent.

    Args:
        studies: what is searched; they take turns.
        folder: of the sweep.
        lanes: runs of one shape that go together as one job.
        progress: what is shown.
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
        self._under_way: dict[Path, OpenTrial] = {}
        self._deaths: Counter[tuple[Path, int]] = Counter()
        self._steps_done: dict[Path, int] = {}
        self._hours = studies[0].plan.sweep.hours
        self._seconds, self._asked_before = folder.read_spent()
        self._news = True
        self._last = time.monotonic()  # whatever is done to the time of day

    def carry_out(self, executor: Executor) -> None:
        """Do all there is to do.

        Raises:
            UserError: the machine does not let runs go on.
        """
        try:
            while True:
                while executor.room() > 0 and (job := self._next_job()):
                    executor.submit(job)
                self._write()
                if not self._under_way:
                    break
                for end in executor.wait():
                    self._take(end)
                now = time.monotonic()
                self._seconds, self._last = self._seconds + now - self._last, now
            for study in self.studies:
                study.close()
            self.progress.say_kept()
        finally:
            executor.close()
            self.folder.write_trials(self.studies)

    def on_step(self, run: RunSpec, step: Step) -> None:
        """Keep in mind how far a run has come, and show it."""
        path = self.folder.run(run).path
        self._steps_done[path] = step.done
        if path in self._under_way:
            self.progress.show(self._under_way[path].trial, run, step)

    def _next_job(self) -> Job | None:
        """The runs that go next; new trials are asked for only when there is room for them."""
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
                self.progress.note(f"{fault}: this run is done again")
            trial = self._under_way[folder.path] = trial_of[folder.path]
            trial.under_way.add(run.seed)
            trial.worked = True
        return Job(tuple(chosen), trial.thresholds(chosen[0]), anew=True)

    def _ready(self) -> Iterator[tuple[RunSpec, OpenTrial]]:
        """Runs that could begin now; no folder has two, though two trials may want the same."""
        taken = set(self._under_way)
        for trial in sorted(self._open, key=lambda trial: trial.trial.number):
            trial.take_ended(taken)
            for run in trial.startable():
                path = trial.folders[run.seed].path
                if path not in taken:
                    taken.add(path)
                    yield run, trial

    def _ask(self) -> bool:
        """Ask the study that is furthest behind for another trial."""
        able = [study for study in self.studies if study.may_ask() and self._has_time(study)]
        if not able:
            return False
        study = min(able, key=lambda study: len(study.trials))
        self._open.append(OpenTrial(study, study.ask(), self.folder))
        return True

    def _has_time(self, study: Study) -> bool:
        """Whether the hours are not over; trials of before are asked for again in any case."""
        before = self._asked_before.get(study.plan.label, 0)
        spent = self._hours is not None and self._seconds >= 3600 * self._hours
        return not spent or len(study.trials) < before

    def _settle(self) -> None:
        """Take what came of trials that are complete."""
        complete = [(trial, came) for trial in self._open if (came := trial.result())]
        for trial, came in complete:
            self._open.remove(trial)
            self._news = True
            trial.study.end(trial.trial.number, came)
            self.progress.end(trial.study, trial.trial.number, kept=not trial.worked)

    def _write(self) -> None:
        """Write down how far the sweep has come."""
        if self._hours is not None:
            asked = {study.plan.label: len(study.trials) for study in self.studies}
            self.folder.write_spent(self._seconds, asked)
        if self._news:
            self.folder.write_trials(self.studies)
            self._news = False

    def _take(self, end: RunOutcome) -> None:
        """Take how a run ended."""
        folder = self.folder.run(end.run)
        trial = self._under_way.pop(folder.path)
        trial.under_way.discard(end.run.seed)
        if end.status in ("blocked", "elsewhere"):
            raise UserError(f"{end.fault} (the sweep has stopped; the same command goes on)")
        by_folder = ended(folder, trial.thresholds(end.run))
        if by_folder is not None:
            end = by_folder
        elif end.status == "finished":
            end = RunOutcome(end.run, "lost", f"{folder.path}: {run_fault(folder)}")
        if end.status == "lost":
            where = (folder.path, self._steps_done.get(folder.path, 0))
            self._deaths[where] += 1
            if self._deaths[where] < MOST_DEATHS:
                self.progress.note(f"{folder.path}: {end.fault}; it is run again")
                return
            end = RunOutcome(end.run, "failed", f"{end.fault}, {MOST_DEATHS} times")
        trial.ends[end.run.seed] = end
