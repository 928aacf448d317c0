"""Many runs as lanes of one program, and in two worker processes.

A step of R lanes is a step of all R runs. It is held against that of one lane, and against that of
a run by itself, as `vcl-radial run --lanes 1` executes it. Two networks: the recipe's, where a step
is arithmetic, and a small one, where it is what Python does around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vcl_radial.bench import many_runs
from vcl_radial.bench.data import noise
from vcl_radial.bench.pictures import Growth, Ratios
from vcl_radial.bench.setting import Images, Result, Row, Setting, row
from vcl_radial.bench.timing import Clock, interleaved, ratios
from vcl_radial.bench.training import BENCHMARK, TWO_TASKS, Training, epochs_to_fill
from vcl_radial.runs.catalogue import plan
from vcl_radial.tracks.continual.lane_runs import LaneRuns
from vcl_radial.tracks.continual.specification import Run

METHOD = "radial-vcl"
PICTURES = (
    Growth("lanes", "A training step of many lanes", ("ratio",)),
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
        "which is what a run costs.",
    ]
    if setting.device == "cpu":
        whole = {"fashion network": Network(setting.images, sizes.recipe), "small network": small}
        for name, (seeds, keys) in sizes.many_runs.items():
            network = whole[name]
            runs = _runs(seeds, network.images, {**network.keys, **keys})
            rows += many_runs.cost_of_runs(name, runs, network.images, setting)
        notes.append(many_runs.note(setting))
    return Result(rows, notes)


class LaneTraining:
    """The second task of runs of one shape, trained again and again as lanes of one program.

    Args:
        runs: one for each lane.
        images: the data.
        device: of the networks and the data.
        clock: for the ends of epochs.
    """

    def __init__(self, runs: Sequence[Run], images: Images, device: str, clock: Clock) -> None:
        self._clock = clock
        self._epoch_ends: list[float] = []
        self.epoch_seconds: list[float] = []
        """Of every call of `train`: the seconds of one of its epochs, all lanes together."""
        self.together = LaneRuns(
            runs[0].stream,
            [run.recipe for run in runs],
            [run.seed for run in runs],
            data_dir=images.folder,
            device=device,
            on_epoch=self._on_epoch,
        )
        self._finish_a_task()

    def set_epochs(self, epochs: int) -> None:
        """Train for so many epochs from now on, at least two."""
        for lane in self.together.lanes:
            lane.recipe = lane.recipe.model_copy(update={"epochs": epochs})

    def train(self) -> None:
        """Train the second task once more in every lane."""
        for lane in self.together.lanes:
            lane.tasks_done = 1
        self._epoch_ends.clear()
        self._finish_a_task()
        ends = self._epoch_ends
        self.epoch_seconds.append((ends[-1] - ends[0]) / (len(ends) - 1))

    def _finish_a_task(self) -> None:
        next(self.together.finish_tasks())
        for lane in self.together.lanes:
            if lane.fault is not None:
                raise lane.fault

    def _on_epoch(self, lane: int, task: int, epoch: int) -> None:
        if lane == 0:
            self._epoch_ends.append(self._clock())


def _runs(count: int, images: Images, keys: Mapping[str, Any]) -> list[Run]:
    """Runs that differ in their seed."""
    return plan(BENCHMARK, [METHOD], range(count), {"stream.dataset": images.dataset, **keys})


def _steps(name: str, network: Network, setting: Setting) -> list[Row]:
    """Seconds per step for each number of lanes, and what they are multiples of."""
    images, keys = network.images, {**network.keys, "epochs": 2, "eval_samples": 1}
    sizes, repeats, clock = setting.sizes, setting.repeats, setting.clock
    alone = Training(METHOD, keys, images, setting.device, clock)
    alone.train()
    alone.strategy.train_epochs = epochs_to_fill(sizes.unit_seconds, alone.epoch_seconds[-1])
    trainings = {}
    for R in sizes.gpu_lanes if setting.device == "cuda" else sizes.lanes:
        trainings[R] = LaneTraining(_runs(R, images, keys), images, setting.device, clock)
        trainings[R].train()
        trainings[R].set_epochs(epochs_to_fill(sizes.unit_seconds, trainings[R].epoch_seconds[-1]))
    work = {str(R): lanes.train for R, lanes in trainings.items()}
    interleaved({_ALONE: alone.train, **work}, repeats, clock, warm_up=0)
    epochs = {str(R): lanes.epoch_seconds[-repeats:] for R, lanes in trainings.items()}
    epochs[_ALONE] = alone.epoch_seconds[-repeats:]
    to_alone = ratios(epochs, _ALONE)
    to_one = {"1": [1.0] * repeats, **ratios(epochs, "1")}
    rows = []
    for R in trainings:
        metrics = {
            "seconds per step": [epoch / alone.steps for epoch in epochs[str(R)]],
            "ratio to one lane": to_one[str(R)],
            "ratio to one lane, per lane": [ratio / R for ratio in to_one[str(R)]],
            "ratio to a run alone, per lane": [ratio / R for ratio in to_alone[str(R)]],
        }
        rows += [row("lanes", name, f"lanes={R}", *found) for found in metrics.items()]
    return rows
