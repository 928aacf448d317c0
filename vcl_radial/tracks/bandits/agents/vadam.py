"""VADAM (Khan et al. 2018): the weights are perturbed in every step, and in every choice."""

from __future__ import annotations

from vcl_radial.nn import GaussianNetwork
from vcl_radial.optimizers.vadam import Vadam
from vcl_radial.tracks.bandits.agents.base import NeuralAgent
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.settings import Recipe


class VadamAgent(NeuralAgent):
    """A Gaussian posterior by `vcl_radial.optimizers.vadam`, for N = rounds x batch size points."""

    optimizer: Vadam

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        super().__init__(inputs, actions, settings)
        network = GaussianNetwork(
            self.point_network(),
            prior_scale=settings.prior_scale,
            initial_noise=settings.vadam_noise,
        )
        self.network = network
        self.optimizer = Vadam(
            network.start([0]), lr=settings.learning_rate, ess=settings.batch_size
        )

    def learn(self, memory: Memory) -> None:
        """Train: with every round the data weigh more against the prior."""
        points = memory.points * self.settings.batch_size
        self.optimizer.ess = points / self.settings.kl_weight
        super().learn(memory)
