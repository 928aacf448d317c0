"""Variational inference: BBB (Blundell et al. 2015) with a Gaussian family, or a radial one.

    loss = mean of (r - f(x; w)[a])^2 / (2 noise^2) + kl_weight KL(q || p) / n,    w ~ q

with n the rounds that were seen. One draw of the weights serves a batch; Riquelme et al. draw each
unit's input instead, which a radial posterior does not allow.
"""

from __future__ import annotations

from torch import Tensor
from torch.optim import Adam

from vcl_radial.nn import MLP, ClosedFormGradients, PosteriorSettings, posterior_blocks
from vcl_radial.objectives import gaussian_nll
from vcl_radial.tracks.bandits.agents.base import NeuralAgent
from vcl_radial.tracks.bandits.environment import Memory
from vcl_radial.tracks.bandits.settings import Recipe


class VariationalAgent(NeuralAgent):
    """A posterior by Adam on means and scales.

    Args:
        inputs: d, of a context.
        actions: K.
        settings: of all agents.
        family: a name of `vcl_radial.posteriors.FAMILIES`.
    """

    def __init__(self, inputs: int, actions: int, settings: Recipe, *, family: str) -> None:
        super().__init__(inputs, actions, settings)
        self.network = MLP(
            inputs,
            actions,
            hidden=settings.hidden,
            multi_head=False,
            posterior=PosteriorSettings(
                family, initial_noise=settings.initial_noise, prior_scale=settings.prior_scale
            ),
        )
        self.blocks = posterior_blocks(self.network, [0])
        self.optimizer = Adam(self.network.parameters(), lr=settings.learning_rate)

    def learn(self, memory: Memory) -> None:
        """Train, with the KL's gradient in closed form."""
        self._closed_form = ClosedFormGradients(self.network)
        try:
            super().learn(memory)
        finally:
            self._closed_form.release()

    def loss(self, predicted: Tensor, rewards: Tensor) -> Tensor:
        """The NLL under Gaussian noise, in nats a point."""
        return gaussian_nll(predicted, rewards, self.settings.noise)

    def before_step(self, memory: Memory) -> None:
        """Add the KL's gradient, over n."""
        self._closed_form.before_step(
            self.optimizer, self.blocks, self.settings.kl_weight / memory.points
        )
