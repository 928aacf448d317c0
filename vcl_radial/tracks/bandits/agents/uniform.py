"""Every action with the same chance, whatever the context."""

from __future__ import annotations

import torch
from torch import Tensor

from vcl_radial.tracks.bandits.agents.base import Agent
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.settings import Recipe


class UniformAgent(Agent):
    """Choose at random and learn nothing."""

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        self.actions = actions

    def choose(self, context: Tensor) -> int:
        """Any action."""
        return int(torch.randint(self.actions, ()))

    def learn(self, memory: Memory) -> None:
        """Nothing."""
