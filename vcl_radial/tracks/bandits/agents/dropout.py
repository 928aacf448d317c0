"""MC dropout (Gal and Ghahramani 2016): a draw of the weights is a mask of the hidden units."""

from __future__ import annotations

from torch import nn

from vcl_radial.tracks.bandits.agents.greedy import GreedyAgent
from vcl_radial.tracks.bandits.settings import Recipe


class DropoutAgent(GreedyAgent):
    """The greedy agent's network with dropout, in training and in every choice."""

    def __init__(self, inputs: int, actions: int, settings: Recipe) -> None:
        super().__init__(inputs, actions, settings)
        # Before the ReLU, which a mask with its factor commutes with; and never out of training.
        body = self.network.body
        assert isinstance(body, nn.ModuleList)
        self.network.body = nn.ModuleList(
            nn.Sequential(layer, nn.Dropout(settings.dropout)) for layer in body
        )
