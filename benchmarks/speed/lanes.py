"""Many runs as lanes of one program, against one run after another.

All runs are of `radial-vcl`. A step of R lanes is a step of all R runs; it is held against that of
a run alone, as `vcl-radial run` trains it with one lane. Per lane: the ratio over the number of
lanes, which is what a run costs. Seconds per step are those of whole epochs, random orders
included. Memory: the peak of a process of its own.

Fashion network: that of the recipe, 1,024 images of 28x28 in each of a task's two classes; a step
is arithmetic. Small network: 50 units, scikit-learn's digits, batches of 32; a step is what Python
does around it.
"""

from __future__ import annotations

from functools import partial

from benchmarks.speed.data import noise
from benchmarks.speed.memory import PEAK, rows_of_probes, train_lanes
from benchmarks.speed.pictures import Growth
from benchmarks.speed.setting import Images, Keys, Row, Setting, rows_of
from benchmarks.speed.timing import measure_in_turn, ratios
from benchmarks.speed.training import (
    EPOCH,
    LANE_METHOD,
    STEP,
    TWO_TASKS,
    LaneTraining,
    Training,
)

ALONE = "a run alone"
PER_LANE = f"ratio to {ALONE}, per lane"
PICTURES = (Growth("lanes", "A training step of many lanes", (STEP, PER_LANE, PEAK)),)
DIGITS = Images("digits", None, "scikit-learn's digits")


def measure(setting: Setting) -> list[Row]:
    """Steps of R lanes, for a network limited by arithmetic and a network that is not."""
    recipe = setting.sizes.recipe
    images = noise(setting.scratch, 4, setting.sizes.lane_images, 1)
    small = {**recipe, "hidden": [50], "batch_size": 32}
    return [
        *steps_of_lanes("fashion network", {**recipe, **TWO_TASKS}, setting.on(images)),
        *steps_of_lanes("small network", small, setting.on(DIGITS)),
    ]


def steps_of_lanes(name: str, keys: Keys, setting: Setting) -> list[Row]:
    """Seconds per step for each number of lanes, their ratio to a run alone, and memory."""
    keys = {**keys, "epochs": 2, "eval_samples": 1}
    sizes = {R: f"lanes={R}" for R in setting.sizes.lanes}
    alone = Training(LANE_METHOD, keys, setting)
    trainings: dict[str, Training | LaneTraining] = {ALONE: alone}
    trainings |= {size: LaneTraining(R, keys, setting) for R, size in sizes.items()}
    for training in trainings.values():
        training.fill(setting.sizes.unit_seconds)
    work = {size: training.train for size, training in trainings.items()}
    epochs = measure_in_turn(work, setting.repeats)[EPOCH]
    to_alone = ratios(epochs, ALONE)
    rows: list[Row] = []
    for R, size in sizes.items():
        steps = [epoch / alone.steps for epoch in epochs[size]]
        per_lane = [ratio / R for ratio in to_alone[size]]
        rows += rows_of({STEP: {name: steps}, PER_LANE: {name: per_lane}}, size)
    probes = {(name, size): partial(train_lanes, R, keys, setting) for R, size in sizes.items()}
    return rows + rows_of_probes(probes)
