"""Runs on split-digits that take well under a second, and finished ones with made-up scores."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vcl_radial.runs.context import RunContext
from vcl_radial.runs.execute import execute
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.planning import plan
from vcl_radial.runs.training import Step
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.tables import COLUMNS
from vcl_radial.tracks.continual.track import Continual

MULTI_HEAD, SINGLE_HEAD = "split-digits-multi-head", "split-digits-single-head"
TINY: dict[str, Any] = {"epochs": 1, "hidden": [8], "eval_samples": 2}


def tiny_run(method: str = "naive", benchmark: str = MULTI_HEAD, **settings: Any) -> Run:
    seed = settings.pop("seed", 0)
    (run,) = plan(benchmark, [method], [seed], TINY | settings)
    return run


@dataclass(frozen=True)
class Event:
    """A step, as "start", "epoch" (of the task at work) or "task" (that is done)."""

    kind: str
    task: int
    epoch: int
    total: int
    accuracy: float | None


def event_of(step: Step, first: bool) -> Event:
    kind = "start" if first else "task" if step.score is not None else "epoch"
    return Event(kind, step.done + (kind == "epoch"), step.epoch, step.epochs, step.score)


def carried_out(run: Run, out: Path, interrupt_at: tuple[str, int] | None = None) -> list[Event]:
    """Execute a run and give what it told, up to Ctrl-C at an event (kind, task)."""
    events: list[Event] = []

    def report(step: Step) -> None:
        event = event_of(step, first=not events)
        events.append(event)
        if (event.kind, event.task) == interrupt_at:
            raise KeyboardInterrupt

    try:
        execute(Continual(), run, RunContext(out), report)
    except KeyboardInterrupt:
        assert interrupt_at is not None
    return events


def accuracy_bytes(run: Run, out: Path) -> bytes:
    return (RunFolder(out, run).path / "accuracy.csv").read_bytes()


ENVIRONMENT = {
    "commit": "0123456789ab",
    "device": "cpu",
    "processor": "a processor",
    "threads": 1,
    "packages": {"torch": "2"},
    "seconds": {"training": 1.0, "evaluation": 1.0},
    "finished": "2026-01-31T12:00:00Z",
    "tasks": ["0, 1", "2, 3"],
}


def finished(
    out: Path, run: Run, tidy: str | None = None, environment: object = ENVIRONMENT
) -> RunFolder:
    """A finished run folder with made-up results on two tasks."""
    rows = [(i, j, "accuracy", 50.0 + i + j) for i in range(3) for j in (1, 2)]
    made_up = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False)
    folder = RunFolder(out, run)
    folder.start()
    folder.finish(
        {
            "accuracy.csv": made_up if tidy is None else tidy,
            "metrics.json": "{}",
            "environment.json": json.dumps(environment),
        }
    )
    return folder
