"""What runs on a task sequence would cost, from a few steps on its first tasks.

A short run learns two batches of the first two tasks for three epochs and scores some test points.
Its last epoch, the end of its task and its scores count for all tasks in proportion to their
points: a method whose tasks get longer, as with replay, takes more than this. Its model grows by
each task as it does by the second one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vcl_radial.data.streams import TensorStream
from vcl_radial.models.format import size_of
from vcl_radial.runs.track import Cost
from vcl_radial.system.memory import peak, reset_peak
from vcl_radial.system.processor import clock
from vcl_radial.tracks.continual.evaluation import evaluate, evaluated_tasks
from vcl_radial.tracks.continual.methods import by_avalanche
from vcl_radial.tracks.continual.networks import stream_for
from vcl_radial.tracks.continual.settings import Run
from vcl_radial.tracks.continual.training import ContinualRun

_TASKS, _BATCHES, _EPOCHS, _SCORED = 2, 2, 3, 500


def costs(runs: Sequence[Run], data_dir: Path | None, device: str) -> Iterator[Cost]:
    """Steps, time, memory and model of each run.

    Raises:
        UserError: the data cannot be read, or a task has no batch.
    """
    streams: dict[str, TensorStream] = {}
    for run in runs:
        key = json.dumps([run.stream.model_dump(), run.recipe.network is None])
        if key not in streams:
            streams = {key: stream_for(run.stream, run.recipe, data_dir, run.seed)}
        yield _cost(run, streams[key], device)


def _cost(run: Run, stream: TensorStream, device: str) -> Cost:
    recipe, points = run.recipe, [len(rows) for rows in stream.train]
    recipe.check_batches(min(points))
    steps = sum(recipe.epochs_of(t + 1) * _batches(run, n) for t, n in enumerate(points))
    work = f"{steps:,} steps of {recipe.batch_size}"
    if by_avalanche(recipe):  # its loop has no epochs to time
        return Cost(work)
    few = _shortened(run, stream)
    epochs = {"epochs": min(_EPOCHS, recipe.epochs), "first_task_epochs": None}
    reset_peak(device)
    ends = [clock(device)]
    short = ContinualRun(
        few,
        recipe.model_copy(update=epochs),
        run.seed,
        evaluate_on=run.evaluate_on,
        device=device,
        on_epoch=lambda *_: ends.append(clock(device)),
    )
    sizes: list[int | None] = []
    for _ in short.trainer.steps(short.source):
        ended = clock(device) - ends[-1]
        sizes.append(size_of(short.trainer.states[-1]))
    learnt = sum(map(len, few.train)) if short.trainings == 1 else len(few.train[-1])
    started = clock(device)
    evaluate(short.method, short.stream, run.evaluate_on, few.n_tasks)
    scored = sum(len(few.rows(task, run.evaluate_on)) for task in range(few.n_tasks))
    seconds = (clock(device) - started) * _scored(run, stream) / max(1, scored)
    # Without a second epoch, the first one has the time of the set-up.
    seconds += (ends[-1] - ends[-2]) * steps / _batches(run, learnt)
    seconds += ended * sum(points) / learnt
    disk = sizes[-1]
    if disk is not None and sizes[0] is not None and len(sizes) > 1:
        disk += (disk - sizes[0]) * (stream.n_tasks - len(sizes))
    return Cost(work, seconds, peak(device), disk)


def _shortened(run: Run, stream: TensorStream) -> TensorStream:
    """The first tasks with few points."""
    few, part = stream.first(min(_TASKS, stream.n_tasks)), run.evaluate_on
    train = tuple(rows[: _BATCHES * run.recipe.batch_size] for rows in few.train)
    scored = tuple(few.rows(task, part)[:_SCORED] for task in range(few.n_tasks))
    shortened: dict[str, Any] = {"train": train, part: scored}
    return dataclasses.replace(few, **shortened)


def _batches(run: Run, points: int) -> int:
    """The number of batches of an epoch."""
    size = run.recipe.batch_size
    return points // size if run.recipe.drop_last else -(-points // size)


def _scored(run: Run, stream: TensorStream) -> int:
    """The number of predictions of a run for its scores after every task."""
    tasks = [evaluated_tasks(stream, done) for done in range(stream.n_tasks + 1)]
    return sum(len(stream.rows(task, run.evaluate_on)) for part in tasks for task in part)
