"""BAdam (Kessler et al. 2020): a posterior read off Adam after every training.

The bandits of the paper use an expansion of the loss with a Gaussian prior N(0, 1 / precision_p)
(Appendix D.3; equations as in the authors' published optimiser): a likelihood N(theta, 1 / (N
sqrt(v))) about Adam's weights theta times that prior,

    precision = N sqrt(v) + precision_p,    mean = N sqrt(v) theta / precision

with v Adam's second moment and N = rounds x batch size.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.optim import Adam

from vcl_radial.nn import GaussianNetwork
from vcl_radial.tracks.bandits.agents.base import NeuralAgent
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.settings import Recipe

_BETA2 = 0.999


class BAdamAgent(NeuralAgent):
    """Train by Adam with point estimates, choose by draws from the posterior."""

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        super().__init__(inputs, actions, settings)
        self.network = self.point_network()
        self.optimizer = Adam(
            self.network.parameters(), lr=settings.learning_rate, betas=(0.9, _BETA2)
        )
        # Of its own weights: draws are about the posterior's means, not about Adam's weights.
        self.posterior = GaussianNetwork(
            copy.deepcopy(self.network), prior_scale=settings.prior_scale
        ).eval()

    def rewards(self, contexts: Tensor) -> Tensor:
        """Expected rewards `[B, K]` under one draw from the posterior."""
        found: Tensor = self.posterior(contexts)
        return found

    @torch.no_grad()
    def learn(self, memory: Memory) -> None:
        """Train, and read the posterior off."""
        with torch.enable_grad():
            super().learn(memory)
        points = memory.points * self.settings.batch_size
        posteriors = self.posterior.posteriors([0]).values()
        for weight, q in zip(self.network.parameters(), posteriors, strict=True):
            moments = self.optimizer.state[weight]
            second = moments["exp_avg_sq"] / (1 - _BETA2 ** float(moments["step"]))
            likelihood = points * second.sqrt()
            q.precision = likelihood + q.prior_precision
            q.mean.copy_(likelihood * weight / q.precision)
