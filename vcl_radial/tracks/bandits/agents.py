"""Agents of a bandit: any method whose weights can be sampled, or uniform choice.

A network maps a context to the expected reward of every action, and a method trains it. Thompson
sampling: the action is the best one under one draw of the weights, a new draw every round
(Riquelme, Tucker and Snoek 2018, section 3 and Appendix; Kessler et al. 2020, Appendix D.3).

The rounds of a game are one task, whose points become known one by one. Each training fits the
posterior to all n rounds so far under the first prior, and carries nothing to the next training. It
takes `steps` batches from these rounds, with replacement; the learning rate of step k (from 0) is
rate / (1 + decay k).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer, RMSprop

from vcl_radial.config import outside
from vcl_radial.methods.base import Method
from vcl_radial.methods.tasks import Batch
from vcl_radial.optimizers.named import own_optimizer
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.likelihood import ChosenReward
from vcl_radial.tracks.bandits.settings import UNIFORM, Recipe
from vcl_radial.tracks.methods import make_method
from vcl_radial.tracks.networks import network_of_rows
from vcl_radial.training.source import Tasks
from vcl_radial.training.trainer import Trainer


class Agent(ABC):
    """Chooses actions, and learns from their rewards."""

    @abstractmethod
    def choose(self, context: Tensor) -> int:
        """Choose an action for a context `[d]`."""

    @abstractmethod
    def learn(self, memory: Memory) -> None:
        """Train on all rounds so far."""


class UniformAgent(Agent):
    """Chooses every action with the same probability in every context, and learns nothing.

    Args:
        actions: number of actions, K.
    """

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def choose(self, context: Tensor) -> int:
        """Choose any action."""
        return int(torch.randint(self.actions, ()))

    def learn(self, memory: Memory) -> None:
        """Learn nothing."""


class MethodAgent(Agent):
    """Is trained by a method, and chooses by draws from the posterior.

    Args:
        recipe: the recipe, which names the method.
        inputs: numbers in a context, d.
        actions: number of actions, K.

    Raises:
        UserError: see `method_of`.
    """

    def __init__(self, recipe: Recipe, inputs: int, actions: int) -> None:
        self.recipe = recipe
        self.method = method_of(recipe, inputs, actions)
        self._start = copy.deepcopy(self.method.state_dict())
        self._middle: dict[str, Any] | None = None
        """State of the training after its last step, before the task has ended."""

    def choose(self, context: Tensor) -> int:
        """The best action under one draw of the weights."""
        return int(self.rewards(context).argmax())

    def rewards(self, context: Tensor) -> Tensor:
        """Expected rewards `[K]` of a context `[d]` under one draw of the weights.

        The seed of the draw is the next number of the global generator.
        """
        method, seed = self.method, int(torch.randint(2**31, ()))
        with method.using(method.predictor(None)):
            return method.draws(context.unsqueeze(0), samples=1, seed=seed)[0, 0]

    def learn(self, memory: Memory) -> None:
        """Train on batches of all rounds so far, and end the task for the next choices.

        Raises:
            Diverged: the loss is no longer a finite number.
        """
        recipe = self.recipe
        trainer = Trainer(
            self.method,
            optimizer=partial(make_optimizer, recipe),
            steps=recipe.steps,
            schedule=lambda done: 1 / (1 + recipe.decay * round(done * recipe.steps)),
            rates_by="step",
            kl_schedule=recipe.kl_schedule,
            clip=recipe.clip if recipe.posterior == "none" else None,
            seed=None,
            measure=False,
            on_epoch=lambda epoch: self._store(trainer),
        )
        state = trainer.state_between_tasks([self._start], 0) | {"loop": self._middle}
        trainer.load_state_dict(state)
        trainer.fit(Tasks([RoundsTask(memory, recipe)]))

    def _store(self, trainer: Trainer) -> None:
        """Store the training at its last step, as the start of the next one."""
        self._middle = copy.deepcopy(trainer.state_dict()["loop"]) | {"epoch": 0}


@dataclass(frozen=True)
class RoundsTask:
    """The rounds so far as a task; see `vcl_radial.training.source.TaskData`.

    Attributes:
        memory: the rounds.
        recipe: recipe of the method.
    """

    memory: Memory
    recipe: Recipe
    heads: Sequence[int] = (0,)

    def __len__(self) -> int:
        return self.memory.points

    @property
    def name(self) -> str:
        """The number of rounds."""
        return f"{len(self)} rounds"

    @property
    def batch_size(self) -> int:
        """Rounds of a batch."""
        return self.recipe.batch_size

    @property
    def epoch_steps(self) -> int:
        """The steps of a training."""
        return self.recipe.steps

    def select(self, rows: Tensor) -> RoundsTask:
        """Raise an error: `Recipe.unsupported_hooks` rejects methods that select points."""
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """Every round once, in order."""
        return self.memory.batches(self.batch_size)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Batches of rounds, drawn with replacement."""
        return (self.memory.batch(self.batch_size) for _ in range(self.epoch_steps))


def make_agent(recipe: Recipe, inputs: int, actions: int) -> Agent:
    """The agent of a recipe, for contexts of d numbers and K actions.

    Raises:
        UserError: see `method_of`.
    """
    if recipe.strategy == UNIFORM:
        return UniformAgent(actions)
    return MethodAgent(recipe, inputs, actions)


def method_of(recipe: Recipe, inputs: int, actions: int) -> Method:
    """The recipe's method, with a network from contexts of d numbers to K expected rewards.

    Raises:
        UserError: the method does not serve this track, or the network.
    """
    noise = None if recipe.loss == "squared-error" else recipe.noise
    return make_method(
        recipe,
        make_network(recipe, inputs, actions),
        likelihood=ChosenReward(noise),
    )


def make_network(recipe: Recipe, inputs: int, actions: int) -> nn.Module:
    """The recipe's network, with a start from the global generator.

    Raises:
        UserError: a user's function gives no such network.
    """
    network = network_of_rows(recipe, inputs, actions, recipe.hidden)
    if recipe.network is None and recipe.posterior == "none":
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.ndim > 1:
                    parameter.uniform_(-recipe.initial_weight, recipe.initial_weight)
    return network


def make_optimizer(recipe: Recipe, network: nn.Module) -> Optimizer:
    """The recipe's optimiser."""
    if recipe.optimizer == "adam":
        return Adam(network.parameters(), lr=recipe.learning_rate)
    if outside.is_named(recipe.optimizer):
        return own_optimizer(recipe.optimizer, network.parameters(), recipe.learning_rate)
    # The published settings are for TensorFlow, where the second moment starts at 1. From 0 the
    # first steps are three times this learning rate, which leaves units dead.
    optimizer = RMSprop(network.parameters(), lr=recipe.learning_rate, alpha=0.9, eps=1e-5)
    for parameter in network.parameters():
        moments = {"step": torch.zeros(()), "square_avg": torch.ones_like(parameter)}
        optimizer.state[parameter] = moments
    return optimizer
