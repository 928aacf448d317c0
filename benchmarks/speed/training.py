"""A task as `vcl-radial run` trains it, and the same task in the shortest loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.speed.setting import Keys, Setting
from benchmarks.speed.timing import Clock
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.lane_runs import LaneRuns
from vcl_radial.tracks.continual.training import ContinualRun

BENCHMARK = "split-fashion-multi-head"
TWO_TASKS = {"stream.tasks": 2, "stream.validation": 0.0}
"""Keys of a stream of four classes of which every image is trained on."""

LANE_METHOD = "radial-vcl"
"""The method of a training in lanes."""

STEP, EPOCH, FIXED = "seconds per step", "seconds per epoch", "fixed seconds per task"


class Epochs:
    """Seconds of the epochs of a training, and of its remaining work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: list[float] = []

    def end(self, *_: object) -> None:
        """Note that an epoch has ended."""
        self._ends.append(self._clock())

    def measure(self, train: Callable[[], object]) -> tuple[int, dict[str, float]]:
        """Number of epochs (at least two), seconds per epoch, and seconds of the remaining work.

        The start of the first epoch is not recorded: the epoch takes as long as later epochs.
        """
        self._ends.clear()
        started = self._clock()
        train()
        seconds, epochs = self._clock() - started, len(self._ends)
        epoch = (self._ends[-1] - self._ends[0]) / (epochs - 1)
        return epochs, {EPOCH: epoch, FIXED: seconds - epochs * epoch}


class Training:
    """The second task of a run, trained repeatedly exactly as `vcl-radial run` trains it.

    Its prior is the posterior of the first task.

    Args:
        method: a name of `baselines/`.
        keys: changed keys of the recipe and the stream, as for `--set`.
        setting: the setting with data, device and clock.
        tuned: whether the recipe has the benchmark's tuned settings, as for `--tuned`.
    """

    def __init__(self, method: str, keys: Keys, setting: Setting, *, tuned: bool = False) -> None:
        keys = {"stream.dataset": setting.images.dataset, **keys}
        (planned,) = plan(BENCHMARK, [method], [0], keys, tuned)
        self.recipe = planned.recipe
        self._epochs = Epochs(setting.clock)
        self.run = ContinualRun(
            planned.stream,
            planned.recipe,
            planned.seed,
            data_dir=setting.images.folder,
            device=setting.device,
            on_epoch=self._end_epoch,
        )
        self.method, self.stream, self.trainer = self.run.method, self.run.stream, self.run.trainer
        self.epochs = 1
        self.train_task(0)
        self.epochs = self.recipe.epochs

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer of the network, with one head."""
        stream = self.run.stream
        return list(pairwise([stream.x[0].numel(), *self.recipe.hidden, stream.n_classes]))

    def _end_epoch(self, *_: object) -> None:
        self._epochs.end()
        self.optimizer = self.trainer.loop.optimizer

    def train_task(self, number: int) -> None:
        """Train a task (from 0) for `epochs` epochs, from the current state."""
        self.trainer.epochs, self.trainer.done = self.epochs, number
        next(self.trainer.steps(self.run.source))

    def train(self) -> dict[str, float]:
        """Train the second task once more, for `epochs` (at least two) epochs."""
        steps = self.run.iterations
        epochs, seconds = self._epochs.measure(lambda: self.train_task(1))
        self.steps = (self.run.iterations - steps) // epochs
        return {STEP: seconds[EPOCH] / self.steps, **seconds}

    def step(self) -> dict[str, float]:
        """Train the task once more; return the seconds of a step."""
        return {STEP: self.train()[STEP]}

    def fill(self, seconds: float) -> Self:
        """Train once as a warm-up, and let a call last so long from now on."""
        self.epochs = 2
        self.epochs = epochs_to_fill(seconds, self.train()[EPOCH])
        return self


class LaneTraining:
    """The second task of runs of one shape, trained repeatedly as lanes of one program.

    Args:
        lanes: number of lanes.
        keys: changed keys of the recipe and the stream, as for `--set`.
        setting: the setting with data, device and clock.
    """

    def __init__(self, lanes: int, keys: Keys, setting: Setting) -> None:
        keys = {"stream.dataset": setting.images.dataset, **keys}
        runs = plan(BENCHMARK, [LANE_METHOD], range(lanes), keys)
        self._epochs = Epochs(setting.clock)
        self.together = LaneRuns(
            runs[0].stream,
            [run.recipe for run in runs],
            [run.seed for run in runs],
            data_dir=setting.images.folder,
            device=setting.device,
            report=lambda lane, step: None if lane else self._epochs.end(),
        )
        self._finish_a_task()

    def train(self) -> dict[str, float]:
        """Train the second task again in every lane; return the seconds of an epoch of all."""
        for lane in self.together.trainer.lanes:
            lane.done = 1
        return self._epochs.measure(self._finish_a_task)[1]

    def fill(self, seconds: float) -> Self:
        """Train once as a warm-up, and let a call last so long from now on."""
        epochs = epochs_to_fill(seconds, self.train()[EPOCH])
        for lane in self.together.trainer.lanes:
            lane.epochs = lambda task: epochs
        return self

    def _finish_a_task(self) -> None:
        next(self.together.steps())
        for lane in self.together.trainer.lanes:
            if lane.fault is not None:
                raise lane.fault


class InMemoryLoop:
    """The shortest training loop around a network: batches by index from one tensor.

    Args:
        network: function from inputs `[B, ...]` to logits `[B, C]`.
        like: training with the task, batch size, epochs and learning rate.
        loss: loss of a batch from inputs and labels; None for the mean NLL.
    """

    def __init__(
        self,
        network: nn.Module,
        like: Training,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        stream = like.stream
        self.x: Tensor = stream.inputs(1, "train")
        self.y: Tensor = stream.labels(1, "train")
        self.recipe, self.epochs = like.recipe, like.epochs
        self.network = network.to(self.x.device)
        self.loss = loss or (lambda x, y: cross_entropy(self.network(x), y))
        self.optimizer = torch.optim.Adam(
            network.parameters(), lr=self.recipe.learning_rate, amsgrad=True, fused=True
        )

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch, in a new random order; an incomplete one is left out."""
        size = self.recipe.batch_size
        order = torch.randperm(len(self.y)).to(self.x.device)
        for start in range(0, len(order) - size + 1, size):
            rows = order[start : start + size]
            yield self.x.index_select(0, rows), self.y.index_select(0, rows)

    @property
    def steps(self) -> int:
        """Steps of a call of `train`."""
        steps: int = self.epochs * (len(self.y) // self.recipe.batch_size)
        return steps

    def train(self) -> None:
        """Train for all epochs."""
        for _ in range(self.epochs):
            for x, y in self.batches():
                self.optimizer.zero_grad()
                self.loss(x, y).backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()


def floor(training: Training) -> InMemoryLoop:
    """The task of a training, and its network with point estimates, in plain PyTorch."""
    return InMemoryLoop(perceptron([nn.Linear(*sizes) for sizes in training.layers]), training)


def perceptron(layers: Sequence[nn.Module]) -> nn.Sequential:
    """Layers with ReLUs between them."""
    with_relus = [module for layer in layers for module in (layer, nn.ReLU(inplace=True))]
    return nn.Sequential(*with_relus[:-1])


def epochs_to_fill(seconds: float, epoch_seconds: float) -> int:
    """Number of epochs that last so long, at least two to show the fixed costs."""
    return max(2, math.ceil(seconds / max(epoch_seconds, 1e-6)))
