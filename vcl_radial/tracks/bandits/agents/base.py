"""An agent, and what all agents with a network share.

A network maps a context to the expected reward of every action. Each training takes `steps` batches
from all that was seen, with replacement, and the loss looks at the chosen actions' rewards only:

    loss = 1/B sum_b (f(x_b)[a_b] - r_b)^2

The learning rate of step k (from 0) of each training is rate / (1 + decay k). Thompson sampling:
the action is the best one under one draw of the weights, a new draw every round (Riquelme, Tucker
and Snoek 2018, section 3 and Appendix; Kessler et al. 2020, Appendix D.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from vcl_radial.errors import Diverged
from vcl_radial.nn import MLP
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.settings import Recipe


class Agent(ABC):
    """Chooses actions, and learns from their rewards."""

    @abstractmethod
    def choose(self, context: Tensor) -> int:
        """An action for a context `[d]`."""

    @abstractmethod
    def learn(self, memory: Memory) -> None:
        """Train on all that was seen."""


class NeuralAgent(Agent):
    """An agent with a network.

    Args:
        inputs: d, of a context.
        actions: K.
        settings: of all agents.
    """

    network: nn.Module
    """Maps contexts `[B, d]` to rewards `[B, K]`."""
    optimizer: Optimizer

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        self.inputs, self.actions, self.settings = inputs, actions, settings

    def point_network(self) -> MLP:
        """A network of point estimates with uniform initial weights and biases at 0."""
        network = MLP(
            self.inputs,
            self.actions,
            hidden=self.settings.hidden,
            multi_head=False,
            posterior=None,
        )
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.ndim > 1:
                    parameter.uniform_(-self.settings.initial_weight, self.settings.initial_weight)
        return network

    @torch.no_grad()
    def choose(self, context: Tensor) -> int:
        """The best action under one draw of the weights."""
        return int(self.rewards(context.unsqueeze(0)).argmax())

    def rewards(self, contexts: Tensor) -> Tensor:
        """Expected rewards `[B, K]` under one draw of the weights."""
        found: Tensor = self.network(contexts)
        return found

    def learn(self, memory: Memory) -> None:
        """Train on batches of all that was seen.

        Raises:
            Diverged: the loss is no longer a finite number.
        """
        loss = torch.zeros(())
        for step in range(self.settings.steps):
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate / (1 + self.settings.decay * step)
            contexts, actions, rewards = memory.batch(self.settings.batch_size)
            predicted = self.network(contexts).gather(1, actions.unsqueeze(1)).squeeze(1)
            loss = self.loss(predicted, rewards)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.before_step(memory)
            self.optimizer.step()
        if not torch.isfinite(loss):
            raise Diverged(f"the loss is {loss.item()} after {memory.points} rounds")

    def loss(self, predicted: Tensor, rewards: Tensor) -> Tensor:
        """The mean squared error of the chosen actions' rewards, both `[B]`."""
        return (predicted - rewards).square().mean()

    def before_step(self, memory: Memory) -> None:
        """Clip the gradient's norm."""
        clip_grad_norm_(self.network.parameters(), self.settings.clip)
