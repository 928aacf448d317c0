"""Many runs as lanes of one program, and in two worker processes.

A step of R lanes is a step of all R runs. It is held against that of one lane, and against that of
a run by itself, as `vcl-radial run --lanes 1` executes it. Two networks: the recipe's, where a step
is arithmetic, and a small one, where it is what Python does around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.speed import many_runs
from benchmarks.speed.data import noise
from benchmarks.speed.exponents import NOTE, exponents
from benchmarks.speed.lane_training import METHOD, LaneTraining, runs_of
from benchmarks.speed.memory import Probe, peaks
from benchmarks.speed.pictures import Growth, Ratios
from benchmarks.speed.setting import Images, Result, Row, Setting, row
from benchmarks.speed.step import SECONDS
from benchmarks.speed.timing import interleaved, ratios
from benchmarks.speed.training import TWO_TASKS, Training

PICTURES = (
    Growth("lanes", "A training step of many lanes", ("ratio", "memory")),
    Ratios("lanes-jobs", "Seeds of a run in two worker processes", many_runs.TIMES),
)

_ALONE = "alone"
_SMALL = {"hidden": [50], "batch_size": 32}


class Network(NamedTuple):
    """A recipe of its own, and what it is trained on."""

    images: Images
    keys: Mapping[str, Any]


def measure(setting: Setting) -> Result:
    """Steps of R lanes; on a CPU also whole runs with and without worker processes."""
    sizes = setting.sizes
    digits = Images("digits", None, "scikit-learn's digits")
    small = Network(digits, {**sizes.recipe, **_SMALL})
    images = noise(setting.scratch / "lanes", 4, sizes.lane_images, 1)
    rows = [
        *_steps("fashion network", Network(images, {**sizes.recipe, **TWO_TASKS}), setting),
        *_steps("small network", small, setting),
    ]
    notes = [
        f"{METHOD}. Fashion network: that of the recipe, {sizes.lane_images} images of 28x28 in "
        "each of a task's two classes. Small network: 50 units, scikit-learn's digits, batches of "
        "32. Seconds per step are those of whole epochs, random orders included.",
        "A run alone: the same run without lanes. Per lane: the ratio over the number of lanes, "
        "which is what a run costs. Memory: the peak of a process of its own.",
    ]
    if setting.device == "cpu":
        whole = {"fashion network": Network(setting.images, sizes.recipe), "small network": small}
        for name, (seeds, keys) in sizes.many_runs.items():
            network = whole[name]
            runs = runs_of(seeds, network.images, {**network.keys, **keys})
            rows += many_runs.cost_of_runs(name, runs, network.images, setting)
        notes.append(many_runs.note(setting))
    return Result(rows + exponents("lanes", rows), [*notes, NOTE])


def _steps(name: str, network: Network, setting: Setting) -> list[Row]:
    """Seconds per step for each number of lanes, and what they are multiples of."""
    images, keys = network.images, {**network.keys, "epochs": 2, "eval_samples": 1}
    sizes, repeats, clock = setting.sizes, setting.repeats, setting.clock
    alone = Training(METHOD, keys, images, setting.device, clock)
    alone.fill(sizes.unit_seconds)
    trainings = {}
    for R in sizes.lanes:
        trainings[R] = LaneTraining(runs_of(R, images, keys), images, setting.device, clock)
        trainings[R].fill(sizes.unit_seconds)
    work = {str(R): lanes.train for R, lanes in trainings.items()}
    interleaved({_ALONE: alone.train, **work}, repeats, clock, warm_up=0)
    epochs = {str(R): lanes.epoch_seconds[-repeats:] for R, lanes in trainings.items()}
    epochs[_ALONE] = alone.epoch_seconds[-repeats:]
    to_alone = ratios(epochs, _ALONE)
    to_one = {"1": [1.0] * repeats, **ratios(epochs, "1")}
    rows = []
    for R in trainings:
        metrics = {
            SECONDS: [epoch / alone.steps for epoch in epochs[str(R)]],
            "ratio to one lane": to_one[str(R)],
            "ratio to one lane, per lane": [ratio / R for ratio in to_one[str(R)]],
            "ratio to a run alone, per lane": [ratio / R for ratio in to_alone[str(R)]],
        }
        rows += [row("lanes", name, f"lanes={R}", *values) for values in metrics.items()]
    probes = {
        (name, f"lanes={R}"): Probe(METHOD, keys, images, setting.device, lanes=R)
        for R in trainings
    }
    return rows + peaks("lanes", probes)
