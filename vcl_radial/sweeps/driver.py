"""A sweep carried out: trials asked for, their runs done, and what came of them stored.

Whatever stops it, the same command goes on: trials are in the database, finished runs in their
folders, and what was under way is at its last finished step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vcl_radial.errors import UserError
from vcl_radial.runs.attempt import Ended, Job
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.spec import RunSpec
from vcl_radial.runs.track import Step
from vcl_radial.sweeps.executor import Executor
from vcl_radial.sweeps.folder import SweepFolder
from vcl_radial.sweeps.outcome import result, run_fault
from vcl_radial.sweeps.progress import Progress
from vcl_radial.sweeps.study import Result, Study, Trial

MOST_DEATHS = 3
"""So often may the process of a run die without getting a step further."""


class OpenTrial:
    """A trial of which not all is done yet."""

    def __init__(self, study: Study, trial: Trial, folder: SweepFolder) -> None:
        self.study, self.trial = study, trial
        self.runs = trial.runs
        self.folders: dict[int, RunFolder[Any]] = {run.seed: folder.run(run) for run in self.runs}
        self.under_way: set[int] = set()
        self.ends: dict[int, Ended] = {}

    def startable(self) -> Iterator[RunSpec]:
        """Runs that could begin now.

        Where hopeless trials are given up, the first seed goes ahead: it alone decides. After a
        run that did not finish there is no score to be had, and no later seed begins.
        """
        ends = [seed for seed, end in self.ends.items() if end.how != "finished"]
        scout = self.trial.plan.sweep.pruning is not None and 0 not in self.ends
        last = min([*ends, 0 if scout else len(self.runs)])
        for run in self.runs[: last + 1]:
            if run.seed not in self.ends and run.seed not in self.under_way:
                yield run

    def result(self) -> Result | None:
        """What came of it, once nothing is left to be done."""
        if self.under_way or any(True for _ in self.startable()):
            return None
        return result(self.ends, self.folders, self.trial.plan.sweep.objective)


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
        self._last = time.monotonic()  # whatever is done to the time of day

    def carry_out(self, executor: Executor) -> None:
        """Do all there is to do.

        Raises:
            UserError: the machine does not let runs go on, or the database cannot be used.
        """
        for study in self.studies:
            for trial in study.trials:
                self._open_again(study, trial)
        try:
            while True:
                while executor.room() > 0 and (job := self._next_job()):
                    executor.submit(job)
                if not self._under_way:
                    break
                for end in executor.wait():
                    self._take(end)
            for study in self.studies:
                study.close()
        finally:
            executor.close()
            self.folder.write_trials(self.studies)

    def on_step(self, run: RunSpec, step: Step) -> None:
        """Keep in mind how far a run has come, and show it."""
        path = self.folder.run(run).path
        self._steps_done[path] = step.done
        if path in self._under_way:
            self.progress.show(self._under_way[path].trial, run, step)

    def _open_again(self, study: Study, trial: Trial) -> None:
        """Go on with a trial of before; one that has ended only if its runs came to harm."""
        known = study.results.get(trial.number)
        if known is not None and known.outcome != "finished":
            return
        again = OpenTrial(study, trial, self.folder)
        self._find_finished(again)
        if known is None or any(True for _ in again.startable()):
            self._open.append(again)

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
        return Job(tuple(chosen), trial.trial.floors if chosen[0].seed == 0 else ())

    def _ready(self) -> Iterator[tuple[RunSpec, OpenTrial]]:
        """Runs that could begin now; no folder has two, though two trials may want the same."""
        taken = set(self._under_way)
        for trial in sorted(self._open, key=lambda trial: trial.trial.number):
            self._find_finished(trial)
            for run in trial.startable():
                path = trial.folders[run.seed].path
                if path not in taken:
                    taken.add(path)
                    yield run, trial

    def _find_finished(self, trial: OpenTrial) -> None:
        while any(self._was_finished(trial, run) for run in list(trial.startable())):
            pass  # the first seed may let the others begin

    def _was_finished(self, trial: OpenTrial, run: RunSpec) -> bool:
        folder = trial.folders[run.seed]
        if folder.path in self._under_way or run_fault(folder) is not None:
            return False
        trial.ends[run.seed] = Ended(run, "finished")
        return True

    def _ask(self) -> bool:
        """Ask the study that is furthest behind for another trial."""
        hours = self.studies[0].plan.sweep.hours
        if hours is not None and self.studies[0].seconds_spent >= 3600 * hours:
            return False
        able = [study for study in self.studies if study.may_ask()]
        if not able:
            return False
        study = min(able, key=lambda study: len(study.trials))
        self._open.append(OpenTrial(study, study.ask(), self.folder))
        return True

    def _settle(self) -> None:
        """Store what came of trials that are complete."""
        complete = [(trial, found) for trial in self._open if (found := trial.result())]
        for trial, found in complete:
            self._open.remove(trial)
            if trial.trial.number not in trial.study.results:
                trial.study.end(trial.trial.number, found)
                self.progress.end(trial.study, trial.trial.number)
        if complete:
            now = time.monotonic()
            self.studies[0].spend(now - self._last)
            self._last = now
            self.folder.write_trials(self.studies)

    def _take(self, end: Ended) -> None:
        """Take how a run ended."""
        folder = self.folder.run(end.run)
        trial = self._under_way.pop(folder.path)
        trial.under_way.discard(end.run.seed)
        if end.how in ("blocked", "elsewhere"):
            raise UserError(f"{end.fault} (the sweep has stopped; the same command goes on)")
        if end.how == "finished" and (fault := run_fault(folder)) is not None:
            end = Ended(end.run, "lost", f"{folder.path}: {fault}")
        if end.how == "lost":
            where = (folder.path, self._steps_done.get(folder.path, 0))
            self._deaths[where] += 1
            if self._deaths[where] < MOST_DEATHS:
                self.progress.note(f"{folder.path}: {end.fault}; it is run again")
                return
            end = Ended(end.run, "failed", f"{end.fault}, {MOST_DEATHS} times")
        trial.ends[end.run.seed] = end
