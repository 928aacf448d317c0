"""Task sequences: a step is a task, and a score is the average accuracy or another metric."""

from __future__ import annotations

import csv
import io
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from vcl_radial.data.backbones import PRETRAINING
from vcl_radial.data.data_files import image_files, required_root
from vcl_radial.data.named_files import file_path
from vcl_radial.files.reading import read_text
from vcl_radial.metrics import run_metrics, summary
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.folder import RunFolder
from vcl_radial.runs.track import Cost, Objective, Track
from vcl_radial.runs.training import Lanes, Step, Training
from vcl_radial.system.quiet import quiet
from vcl_radial.tracks.continual.settings import IMAGE_FOLDER, Run

if TYPE_CHECKING:
    import pandas as pd

    from vcl_radial.models.model import Model
    from vcl_radial.reporting.blocks import Section
    from vcl_radial.runs.track import FinishedRun


class Continual(Track[Run]):
    """Streams of images in tasks, one posterior carried through all of them."""

    spec = Run
    methods = ("radial-vcl", "gaussian-vcl")
    search_keys = ("first_tasks",)
    step = "task"
    objectives: ClassVar = {
        name: Objective("maximize" if metric.better == "higher" else "minimize", metric.heading)
        for name, metric in run_metrics().items()
        if metric.better is not None and metric.of == "run"
    }
    worker_modules = (
        "vcl_radial.runs.attempt",
        "vcl_radial.tracks.continual.track",
        "vcl_radial.tracks.continual.training",
        "sklearn.datasets",
    )
    curves = "accuracy-over-tasks"
    has_lanes = True

    def variants(
        self, tables: Mapping[str, Any], benchmark: Path | None = None
    ) -> list[Mapping[str, Any]]:
        """A single run; its file of features may lie in the benchmark's folder."""
        stream = tables["stream"]
        if isinstance(features := stream.get("features"), str) and features not in PRETRAINING:
            stream = {**stream, "features": str(file_path(features, benchmark))}
        return [{**tables, "stream": stream}]

    def split_of(self, seed: int) -> dict[str, Any]:
        """Draw the validation part from the seed; the test images are the standard ones."""
        return {"stream.split_seed": seed}

    def check_data(self, runs: Sequence[Run], data_dir: Path | None) -> None:
        """Make each stream, and each method for it once."""
        with quiet():  # Avalanche's imports warn
            from vcl_radial.tracks.continual.execute import check_made_on, check_update

            groups: dict[str, list[Run]] = {}
            for run in runs:
                if run.updates:
                    check_update(run, data_dir)
                    continue
                key = f"{_stream_key(run)} {run.recipe.network is None}"
                groups.setdefault(key, []).append(run)
            for group in groups.values():
                check_made_on(group, data_dir)
        if any(run.stream.dataset == IMAGE_FOLDER and not run.updates for run in runs):
            _warn_of_ignored_files(required_root(IMAGE_FOLDER, data_dir))

    def open(self, run: Run, context: RunContext, report: Callable[[Step], None]) -> Training:
        """Open a run at its start."""
        from vcl_radial.tracks.continual.execute import open_run

        return open_run(run, context, report)

    def costs(
        self, groups: Sequence[Sequence[Run]], data_dir: Path | None, device: str
    ) -> Iterable[Cost]:
        """Steps, time, memory and model of a run, from a short one on a part of its data."""
        with quiet():  # Avalanche's imports warn
            from vcl_radial.tracks.continual.costs import costs

        return costs([group[0] for group in groups], data_dir, device)

    def read(self, path: Path, environment: Mapping[str, Any]) -> Mapping[str, pd.DataFrame]:
        """Read `accuracy`, and, where a run has them, `layers` and `avalanche`."""
        from vcl_radial.tracks.continual.tables import read

        return read(path, environment)

    def scores(self, run: FinishedRun) -> pd.DataFrame:
        """Scores on a task (from 1) after a number of tasks (from 0)."""
        from vcl_radial.tracks.continual.tables import all_scores

        return all_scores(run)

    def sections(self, runs: Sequence[FinishedRun], data_dir: Path | None) -> list[Section]:
        """The leaderboard, curves, heatmaps and layers."""
        from vcl_radial.tracks.continual.sections import report

        return report(runs)

    def scores_so_far(self, folder: RunFolder[Run]) -> dict[int, float]:
        """The average accuracy over the tasks trained so far, after each task."""
        if folder.fault() is None:
            _, *rows = csv.reader(read_text(folder.path / "accuracy.csv").splitlines())
            return _averages([(int(i), int(j), metric, float(v)) for i, j, metric, v in rows])
        state = folder.load_checkpoint()
        return _averages(state["rows"]) if state is not None else {}

    def score(self, folder: RunFolder[Run], objective: str) -> float | None:
        """One of `metrics.summary`, computed from the run's table."""
        import pandas as pd

        from vcl_radial.tracks.continual.tables import scores

        table = pd.read_csv(io.StringIO(read_text(folder.path / "accuracy.csv")))
        return summary(scores(table))[objective]

    def chance(self, folder: RunFolder[Run]) -> float | None:
        """The mean accuracy on all tasks before any training."""
        rows = csv.DictReader(read_text(folder.path / "accuracy.csv").splitlines())
        untrained = [
            float(row["value"])
            for row in rows
            if row["task_trained"] == "0" and row["metric"] == "accuracy"
        ]
        return statistics.fmean(untrained) if untrained else None

    def kept_model(self, training: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The method after the last task."""
        from vcl_radial.tracks.continual.models import kept

        return kept(training)

    def restored_model(self, run: Run, card: Mapping[str, Any], state: dict[str, Any]) -> Model:
        """The method as it was kept."""
        with quiet():  # Avalanche's imports warn
            from vcl_radial.tracks.continual.models import restored

            return restored(run, card, state)

    def new_task(self, model: Model, data: Path) -> str:
        """The checksum of images or rows, and of their classes."""
        with quiet():  # Avalanche's imports warn
            from vcl_radial.tracks.continual.updating import new_task

            return new_task(model, data)

    def epochs(self, run: Run) -> int:
        """Epochs of all tasks together."""
        return run.recipe.epochs_until(run.stream.trained_tasks + len(run.updates or ()))

    def batches(self, runs: Sequence[Run], lanes: int) -> list[list[Run]]:
        """Runs of one stream and one shape."""
        if lanes == 1:
            return [[run] for run in runs]
        with quiet():  # Avalanche's imports warn
            from vcl_radial.tracks.continual.lane_runs import shape

        groups: dict[str, list[Run]] = {}
        for number, run in enumerate(runs):
            stream = f"{_stream_key(run)} {run.evaluate_on}"
            groups.setdefault(f"{stream} {shape(run.recipe) or number}", []).append(run)
        return [
            group[start : start + lanes]
            for group in groups.values()
            for start in range(0, len(group), lanes)
        ]

    def open_together(
        self, runs: Sequence[Run], context: RunContext, report: Callable[[int, Step], None]
    ) -> Lanes:
        """Open a batch at its start."""
        from vcl_radial.tracks.continual.lane_runs import LaneRuns

        return LaneRuns(
            runs[0].stream,
            [run.recipe for run in runs],
            [run.seed for run in runs],
            evaluate_on=runs[0].evaluate_on,
            data_dir=context.data_dir,
            device=context.device,
            report=report,
        )


def _stream_key(run: Run) -> str:
    """A key that runs on the same stream share."""
    seed = run.seed if run.stream.varies_with_seed else None
    return json.dumps([run.stream.model_dump(), seed])


def _warn_of_ignored_files(root: Path) -> None:
    left_out = image_files(root).left_out
    if left_out:
        print(
            f"{root}: files that are no images by their ending, or no images of a class, are left "
            f"out ({len(left_out)}, the first is {left_out[0]})",
            file=sys.stderr,
        )


def _averages(rows: Sequence[Sequence[Any]]) -> dict[int, float]:
    """Average accuracy after each task; from `task_trained, task_evaluated, metric, value`."""
    accuracies: dict[int, list[float]] = {}
    for trained, evaluated, metric, value in rows:
        if metric == "accuracy" and 1 <= evaluated <= trained:
            accuracies.setdefault(trained, []).append(value)
    return {task: sum(values) / len(values) for task, values in sorted(accuracies.items())}


TRACK = Continual
