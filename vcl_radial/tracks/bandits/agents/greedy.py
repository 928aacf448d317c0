"""A deterministic network by RMSprop: always the action that looks best."""

from __future__ import annotations

import torch
from torch.optim import RMSprop

from vcl_radial.tracks.bandits.agents.base import NeuralAgent
from vcl_radial.tracks.bandits.settings import Recipe


class GreedyAgent(NeuralAgent):
    """Point estimates; what exploration there is comes from training (Riquelme et al.'s RMS)."""

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        super().__init__(inputs, actions, settings)
        self.network = self.point_network()
        # As TensorFlow has it, in whose terms the published settings are: there the second moment
        # starts at 1. From 0, first steps of three times this learning rate put units to rest.
        self.optimizer = RMSprop(
            self.network.parameters(), lr=settings.learning_rate, alpha=0.9, eps=1e-5
        )
        for parameter in self.network.parameters():
            moments = {"step": torch.zeros(()), "square_avg": torch.ones_like(parameter)}
            self.optimizer.state[parameter] = moments
