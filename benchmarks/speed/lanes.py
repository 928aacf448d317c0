"""Many runs as lanes of one program, and in two worker processes.

A step of R lanes is a step of all R runs. It is held against that of one lane, and against that of
a run by itself, as `vcl-radial run --lanes 1` executes it. Two networks: the recipe's, where a step
is arithmetic, and a small one, where it is what Python does around it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.speed.data import noise
from benchmarks.speed.exponents import NOTE, exponents
from benchmarks.speed.memory import Probe, peaks
from benchmarks.speed.pictures import Growth, Ratios
from benchmarks.speed.setting import Images, Result, Row, Setting, rows_of
from benchmarks.speed.timing import interleaved, measure_in_turn, ratios
from benchmarks.speed.training import (
    EPOCH,
    LANE_METHOD,
    STEP,
    TWO_TASKS,
    LaneTraining,
    Training,
    runs_of,
)
from vcl_radial.errors import VclRadialError
from vcl_radial.runs.context import RunContext
from vcl_radial.runs.runner import available_cores, perform
from vcl_radial.tracks.continual.specification import Run

JOBS = 2
TIMES = "times one process"
"""The seconds of one process over those of each way."""

PICTURES = (
    Growth("lanes", "A training step of many lanes", ("ratio", "memory")),
    Ratios("lanes-jobs", "Seeds of a run in two worker processes", TIMES),
)
_ALONE, _ONE = "alone", "one process"


def measure(setting: Setting) -> Result:
    """Steps of R lanes; on a CPU also whole runs with and without worker processes."""
    sizes = setting.sizes
    digits = Images("digits", None, "scikit-learn's digits")
    small = {**sizes.recipe, "hidden": [50], "batch_size": 32}
    images = noise(setting.scratch / "lanes", 4, sizes.lane_images, 1)
    rows = [
        *steps_of_lanes("fashion network", images, {**sizes.recipe, **TWO_TASKS}, setting),
        *steps_of_lanes("small network", digits, small, setting),
    ]
    notes = [
        f"{LANE_METHOD}. Fashion network: that of the recipe, {sizes.lane_images} images of 28x28 "
        "in each of a task's two classes. Small network: 50 units, scikit-learn's digits, batches "
        "of 32. Seconds per step are those of whole epochs, random orders included.",
        "A run alone: the same run without lanes. Per lane: the ratio over the number of lanes, "
        "which is what a run costs. Memory: the peak of a process of its own.",
    ]
    if setting.device == "cpu":
        seeds, keys = sizes.many_runs
        runs = runs_of(seeds, digits, {**small, **keys})
        rows += cost_of_runs("small network", runs, digits, setting)
        named = ", ".join([f"{seeds} seeds", *(f"{key}={value}" for key, value in keys.items())])
        notes.append(
            f"`--jobs {JOBS}`: wall-clock seconds of whole runs with evaluation and run folders, "
            "and one process's over them; the processes have to start in that time. "
            f"{available_cores()} core(s). small network: {named}."
        )
    return Result(rows + exponents("lanes", rows), [*notes, NOTE])


def steps_of_lanes(name: str, images: Images, keys: dict[str, Any], setting: Setting) -> list[Row]:
    """Seconds per step for each number of lanes, their ratios, and memory."""
    keys = {**keys, "epochs": 2, "eval_samples": 1}
    alone = Training(LANE_METHOD, keys, images, setting)
    trainings: dict[str, Training | LaneTraining] = {_ALONE: alone}
    for R in setting.sizes.lanes:
        trainings[str(R)] = LaneTraining(R, keys, images, setting)
    for training in trainings.values():
        training.fill(setting.sizes.unit_seconds)
    work = {lanes: training.train for lanes, training in trainings.items()}
    epochs = measure_in_turn(work, setting.repeats)[EPOCH]
    to_alone = ratios(epochs, _ALONE)
    to_one = {"1": [1.0] * setting.repeats, **ratios(epochs, "1")}
    rows: list[Row] = []
    probes = {}
    for R in setting.sizes.lanes:
        metrics = {
            STEP: [epoch / alone.steps for epoch in epochs[str(R)]],
            "ratio to one lane": to_one[str(R)],
            "ratio to one lane, per lane": [ratio / R for ratio in to_one[str(R)]],
            "ratio to a run alone, per lane": [ratio / R for ratio in to_alone[str(R)]],
        }
        size = f"lanes={R}"
        rows += rows_of("lanes", {metric: {name: of} for metric, of in metrics.items()}, size)
        probes[name, size] = Probe(LANE_METHOD, keys, images, setting, R)
    return rows + peaks("lanes", probes)


def cost_of_runs(name: str, runs: Sequence[Run], images: Images, setting: Setting) -> list[Row]:
    """Wall-clock seconds of runs of one shape, and one process's seconds over them."""
    lanes = -(-len(runs) // JOBS)  # so that every job has one batch of runs
    ways = {
        f"{name}, {_ONE}": (1, 1),
        f"{name}, --jobs {JOBS}": (JOBS, 1),
        f"{name}, --jobs {JOBS} --lanes {lanes}": (JOBS, lanes),
    }
    work = {way: partial(_carry_out, runs, images, setting, *of) for way, of in ways.items()}
    # Wall-clock time: other processes do the work.
    seconds = interleaved(work, setting.repeats, time.perf_counter, warm_up=0)
    to_one = ratios(seconds, f"{name}, {_ONE}")
    times = {way: [1 / ratio for ratio in of] for way, of in to_one.items()}
    return rows_of("lanes", {"seconds": seconds, TIMES: times})


def _carry_out(
    runs: Sequence[Run], images: Images, setting: Setting, jobs: int, lanes: int
) -> None:
    with TemporaryDirectory(dir=setting.scratch) as out, redirect_stdout(io.StringIO()):
        ends = perform(runs, RunContext(Path(out), images.folder), jobs, lanes)
    for end in ends:
        if end.fault is not None:
            raise VclRadialError(end.fault)
