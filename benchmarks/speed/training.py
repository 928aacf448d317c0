"""The two things that are compared: a task as `vcl-radial run` trains it, and the floor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.speed.setting import Images
from benchmarks.speed.timing import Clock, interleaved
from vcl_radial.runs.planning import plan
from vcl_radial.tracks.continual.training import ContinualRun

BENCHMARK = "split-fashion-multi-head"

TWO_TASKS = {"stream.tasks": 2, "stream.validation": 0.0}
"""Keys of a stream of four classes of which every image is trained on."""


class Training:
    """A task that is trained again and again, exactly as `vcl-radial run` trains it.

    It is the second one, whose prior is the posterior of the first.

    Args:
        method: a name of `baselines/`.
        keys: those of the recipe and the stream that are to differ, as for `--set`.
        images: the data.
        device: of the network and the data.
        clock: for the parts of a call.
        tuned: whether the recipe is the tuned one of the benchmark, as for `--tuned`.
    """

    def __init__(
        self,
        method: str,
        keys: Mapping[str, Any],
        images: Images,
        device: str,
        clock: Clock,
        *,
        tuned: bool = False,
    ) -> None:
        settings = {"stream.dataset": images.dataset, **keys}
        (planned,) = plan(BENCHMARK, [method], [0], settings, tuned)
        self.recipe = planned.recipe
        self._clock = clock
        self._epoch_ends: list[float] = []
        self.run = ContinualRun(
            planned.stream,
            planned.recipe,
            planned.seed,
            data_dir=images.folder,
            device=device,
            on_epoch=lambda task, epoch, means: self._epoch_ends.append(clock()),
        )
        self.epoch_seconds: list[float] = []
        """Of every call of `train`: the seconds of one of its epochs."""
        self.fixed_seconds: list[float] = []
        """Of every call of `train`: the seconds that its epochs do not account for."""
        self.steps = 0
        """Steps of an epoch of the last call of `train`."""
        self.strategy.train_epochs = 1
        self.strategy.train(self.run.train_experiences[:1], eval_streams=[])
        self.strategy.train_epochs = self.recipe.epochs

    @property
    def strategy(self) -> Any:
        """The strategy of the run."""
        return self.run.strategy

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer of the network, with one head."""
        stream = self.run.stream
        return list(pairwise([stream.x[0].numel(), *self.recipe.hidden, stream.n_classes]))

    def train(self) -> None:
        """Train the second task once more, for `strategy.train_epochs` (at least two) epochs."""
        self._epoch_ends.clear()
        steps_before = self.strategy.clock.train_iterations
        started = self._clock()
        self.strategy.train(self.run.train_experiences[1:2], eval_streams=[])
        seconds = self._clock() - started
        epochs = len(self._epoch_ends)
        # The first epoch has no beginning that is told of: it is taken to be like the others.
        epoch = (self._epoch_ends[-1] - self._epoch_ends[0]) / (epochs - 1)
        self.epoch_seconds.append(epoch)
        self.fixed_seconds.append(seconds - epochs * epoch)
        self.steps = (self.strategy.clock.train_iterations - steps_before) // epochs

    def fill(self, seconds: float) -> None:
        """Train once as a warm-up, and let a call last so long from now on."""
        self.strategy.train_epochs = 2
        self.train()
        self.strategy.train_epochs = epochs_to_fill(seconds, self.epoch_seconds[-1])

    def seconds_per_step(self, calls: Sequence[float]) -> list[float]:
        """Seconds of a step in each of the last calls, without what a task costs once."""
        return [epoch / self.steps for epoch in self.epoch_seconds[-len(calls) :]]


class InMemoryLoop:
    """The shortest training loop there is around a network: batches by index from one tensor.

    Args:
        network: maps inputs `[B, ...]` to logits `[B, C]`.
        like: whose task, batch size, epochs and learning rate these are.
    """

    def __init__(self, network: nn.Module, like: Training) -> None:
        stream = like.strategy.tensor_stream
        self.x: Tensor = stream.inputs(1, "train")
        self.y: Tensor = stream.labels(1, "train")
        self.recipe = like.recipe
        self.epochs = like.recipe.epochs
        self.network = network.to(self.x.device)
        self.optimizer = torch.optim.Adam(
            network.parameters(), lr=self.recipe.learning_rate, amsgrad=True, fused=True
        )

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean NLL of a batch."""
        return cross_entropy(self.network(x), y)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch, in a new random order; an incomplete one is left out."""
        size = self.recipe.batch_size
        order = torch.randperm(len(self.y)).to(self.x.device)
        for start in range(0, len(order) - size + 1, size):
            rows = order[start : start + size]
            yield self.x.index_select(0, rows), self.y.index_select(0, rows)

    def train(self) -> None:
        """Train for `epochs`, those of the recipe unless they were set."""
        for _ in range(self.epochs):
            for x, y in self.batches():
                self.optimizer.zero_grad()
                self.loss(x, y).backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()

    def seconds_per_step(self, calls: Sequence[float]) -> list[float]:
        """Seconds of a step in each call of `train`, given those of the calls."""
        steps = self.epochs * (len(self.y) // self.recipe.batch_size)
        return [call / steps for call in calls]


class Loop(Protocol):
    """A training whose steps are measured."""

    def train(self) -> None:
        """Make many steps."""

    def seconds_per_step(self, calls: Sequence[float]) -> list[float]:
        """Seconds of a step in each of the last calls of `train`, given those of the calls."""


def step_seconds(loops: Mapping[str, Loop], repeats: int, clock: Clock) -> dict[str, list[float]]:
    """Seconds of a step of each loop in every round, all of them warm already."""
    calls = interleaved({name: loop.train for name, loop in loops.items()}, repeats, clock, 0)
    return {name: loop.seconds_per_step(calls[name]) for name, loop in loops.items()}


def epochs_to_fill(seconds: float, epoch_seconds: float) -> int:
    """How many epochs last so long; two are the fewest that can be told from the fixed costs."""
    return max(2, math.ceil(seconds / max(epoch_seconds, 1e-6)))


def number_of_weights(layers: Sequence[tuple[int, int]], heads: int = 1) -> int:
    """Weights and biases of a network, each counted once however many numbers describe it."""
    *body, head = [(n_in + 1) * n_out for n_in, n_out in layers]
    return sum(body) + heads * head


def perceptron(layers: Sequence[nn.Module]) -> nn.Sequential:
    """Layers with ReLUs between them."""
    with_relus = [module for layer in layers for module in (layer, nn.ReLU(inplace=True))]
    return nn.Sequential(*with_relus[:-1])


def floor(training: Training) -> InMemoryLoop:
    """The floor of a training: its task, and its network with point estimates in plain PyTorch."""
    return InMemoryLoop(perceptron([nn.Linear(*sizes) for sizes in training.layers]), training)
