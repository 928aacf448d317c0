"""Searches on task sequences: a step is a task, a score the average accuracy or another metric."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vcl_radial.experiments import catalogue
from vcl_radial.experiments.execute import Event, Place, execute
from vcl_radial.experiments.lanes import batches, execute_lanes
from vcl_radial.experiments.preflight import check_data, check_runs
from vcl_radial.experiments.run_folder import RunFolder
from vcl_radial.experiments.runner import load_data
from vcl_radial.experiments.specification import Run, validated
from vcl_radial.sweeps.tracks.track import Objective, Step, Track


class Continual(Track[Run, RunFolder]):
    """What `vcl-radial run` runs."""

    command = "run"
    table = "stream"
    step = "task"
    objectives: ClassVar = {
        "average_accuracy": Objective("maximize", "average accuracy (%)"),
        "minimum_accuracy": Objective("maximize", "minimum accuracy (%)"),
        "learning_accuracy": Objective("maximize", "learning accuracy (%)"),
        "backward_transfer": Objective("maximize", "backward transfer (points)"),
        "forward_transfer": Objective("maximize", "forward transfer (points)"),
        "forgetting": Objective("minimize", "forgetting (points)"),
        "recency_bias": Objective("minimize", "recency bias (%)"),
        "average_nll": Objective("minimize", "NLL (nats)"),
        "average_ece": Objective("minimize", "ECE (%)"),
    }
    has_lanes = True

    def benchmarks(self) -> list[str]:
        """Those of `benchmarks/`."""
        return catalogue.names("benchmark")

    def recipe_of(self, benchmark: str) -> Mapping[str, Any]:
        """Its [recipe]; options are the method's."""
        recipe = catalogue.section(catalogue.load("benchmark", benchmark), "recipe")
        return {key: value for key, value in recipe.items() if key != "options"}

    def plan(self, benchmark: str, method: str, seed: int, settings: Mapping[str, Any]) -> Run:
        """A run of `vcl-radial run`."""
        (run,) = catalogue.plan(benchmark, [method], [seed], settings)
        return run

    def check_runs(self, runs: Sequence[Run]) -> None:
        """As before `vcl-radial run`."""
        check_runs(runs)

    def check_files(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """As `vcl-radial run`."""
        check_data(runs, data_dir)

    def validated(self, tables: Mapping[str, Any]) -> Run:
        """A run from its settings."""
        return validated(**tables)

    def on_data(self, run: Run, data_dir: Path | None) -> Run:
        """A run with the checksum of its data."""
        return run.on_data(data_dir)

    def split_of(self, seed: int) -> dict[str, Any]:
        """The seed is that of the validation part too; test images are the standard ones."""
        return {"stream.split_seed": seed}

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Load each data set."""
        load_data(runs, data_dir)

    def folder(self, out: Path, run: Run) -> RunFolder:
        """The folder of a run."""
        return RunFolder(out, run)

    def execute(self, run: Run, place: Place, tell: Callable[[Step], None]) -> None:
        """Carry a run out."""
        execute(run, place, lambda event: tell(_step(event)))

    def so_far(self, folder: RunFolder) -> dict[int, float]:
        """The average accuracy over the tasks trained so far, after each task."""
        if folder.fault() is None:
            _, *rows = csv.reader((folder.path / "accuracy.csv").read_text().splitlines())
            return _averages([(int(i), int(j), metric, float(v)) for i, j, metric, v in rows])
        state = folder.load_checkpoint()
        return _averages(state["rows"]) if state is not None else {}

    def score(self, folder: RunFolder, objective: str) -> float | None:
        """One of `metrics.summary`; by its own table a run from before a score was there has it."""
        import pandas as pd

        from vcl_radial.metrics import summary

        return summary(pd.read_csv(folder.path / "accuracy.csv"))[objective]

    def chance(self, folder: RunFolder) -> float | None:
        """The mean accuracy on all tasks before any training."""
        rows = csv.DictReader((folder.path / "accuracy.csv").read_text().splitlines())
        untrained = [
            float(row["value"])
            for row in rows
            if row["task_trained"] == "0" and row["metric"] == "accuracy"
        ]
        return statistics.fmean(untrained) if untrained else None

    def seconds(self, environment: Mapping[str, Any]) -> float:
        """Training and evaluation."""
        return float(sum(environment["seconds"].values()))

    def batches(self, runs: Sequence[Run], lanes: int) -> list[list[Run]]:
        """Runs of one stream and one shape."""
        return batches(runs, lanes)

    def execute_together(
        self, runs: Sequence[Run], place: Place, tell: Callable[[Run, Step], None]
    ) -> list[str | None]:
        """Carry a batch out as lanes of one program."""
        return execute_lanes(runs, place, lambda run, event: tell(run, _step(event)))


def _step(event: Event) -> Step:
    at_work = event.task if event.kind == "epoch" else min(event.task + 1, event.tasks)
    score = event.accuracy if event.kind == "task" else None
    return Step(event.task - (event.kind == "epoch"), f"task {at_work}/{event.tasks}", score)


def _averages(rows: Sequence[Sequence[Any]]) -> dict[int, float]:
    """Over the tasks seen, after each task; from `task_trained, task_evaluated, metric, value`."""
    seen: dict[int, list[float]] = {}
    for trained, evaluated, metric, value in rows:
        if metric == "accuracy" and 1 <= evaluated <= trained:
            seen.setdefault(trained, []).append(value)
    return {task: sum(values) / len(values) for task, values in sorted(seen.items())}
