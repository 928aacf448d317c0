"""An executor that trains nothing: scores are made up, and jobs end in any order."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from tiny_runs import ENVIRONMENT
from tiny_sweeps import plans_of

from vcl_radial.metrics import summary
from vcl_radial.runs.attempt import Job, RunOutcome
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.sweeps.command import perform_sweep
from vcl_radial.sweeps.study import Study
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.tables import COLUMNS, scores

FACTS = {
    "seconds": {"training": 3.0, "evaluation": 1.0},
    "command": "vcl-radial sweep tiny.toml",
}
TASKS = 2
Accuracy = Callable[[Run, int], float]


def from_its_settings(run: Run, task: int) -> float:
    """Any number from 50 to 100 that depends on the recipe, the seed and the task alone."""
    return random.Random(f"{run.digest()} {run.method} {run.seed} {task}").uniform(50.0, 100.0)


def rows_of(run: Run, accuracy: Accuracy, tasks: int = TASKS) -> list[tuple[int, int, str, float]]:
    """Before training every task scores 50; after task i all have the accuracy of task i."""
    values = {i: 50.0 if i == 0 else accuracy(run, i) for i in range(tasks + 1)}
    return [(i, j, "accuracy", values[i]) for i in values for j in range(1, TASKS + 1)]


class MadeUp:
    """Ends one of the jobs under way, chosen at random, with each call of `wait`."""

    device = None

    def __init__(
        self, jobs: int = 1, seed: int = 0, accuracy: Accuracy = from_its_settings
    ) -> None:
        self.jobs, self.accuracy = jobs, accuracy
        self.chance = random.Random(seed)
        self.under_way: list[Job] = []
        self.done: list[Run] = []

    def start(self, track, context, on_step) -> None:
        self.context = context

    def room(self) -> int:
        return self.jobs - len(self.under_way)

    def submit(self, job: Job) -> None:
        self.under_way.append(job)

    def wait(self) -> list[RunOutcome]:
        job = self.under_way.pop(self.chance.randrange(len(self.under_way)))
        return [self.end(run, job) for run in job.runs]

    def end(self, run: Run, job: Job) -> RunOutcome:
        self.done.append(run)
        folder = RunFolder(self.context.out, run)
        folder.start()
        for threshold in job.thresholds:
            if self.accuracy(run, threshold.step) < threshold.score:
                folder.save_checkpoint({"rows": rows_of(run, self.accuracy, threshold.step)})
                return RunOutcome(run, "pruned", f"after task {threshold.step}: {threshold.reason}")
        tidy = pd.DataFrame(rows_of(run, self.accuracy), columns=COLUMNS)
        folder.finish(
            {
                "accuracy.csv": tidy.to_csv(index=False),
                "metrics.json": json.dumps(summary(scores(tidy))),
                "environment.json": json.dumps(ENVIRONMENT | FACTS),
            }
        )
        return RunOutcome(run, "finished")

    def close(self) -> None:
        self.under_way = []


def made_up(
    out: Path,
    executor: Callable[..., MadeUp] = MadeUp,
    *,
    jobs: int = 1,
    order: int = 0,
    accuracy: Accuracy = from_its_settings,
    name: str = "tiny",
    storage: str | None = None,
    **changes: Any,
) -> tuple[list[Study], MadeUp]:
    """A sweep of the tiny table with such an executor."""
    made = executor(jobs, order, accuracy)
    plans, context = plans_of(name, **changes), RunContext(out)
    return perform_sweep(plans, context, storage=storage, executor=made), made
