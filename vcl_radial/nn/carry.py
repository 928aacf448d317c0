"""The posterior of a whole network: its KL to the prior, and the step to the next prior."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch
from torch import Tensor, nn

from vcl_radial.nn.blocks import PosteriorBlock
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import VariationalWeights


def variational_weights(network: nn.Module, tasks: Collection[int]) -> Iterator[VariationalWeights]:
    """The variational weights that these tasks use: the body and their heads."""
    if isinstance(network, VariationalWeights):
        yield network
    elif isinstance(network, MultiHead):
        for task in sorted(tasks):
            yield from variational_weights(network.head(task), tasks)
    else:
        for child in network.children():
            yield from variational_weights(child, tasks)


def posterior_blocks(network: nn.Module, tasks: Collection[int]) -> list[PosteriorBlock]:
    """The blocks that these tasks use, in the order in which a forward pass draws them."""
    layers = variational_weights(network, tasks)
    return [block for weights in layers for block in weights.posterior_blocks()]


def kl_divergence(network: nn.Module, tasks: Collection[int]) -> Tensor:
    """KL(q || p) of the body and of the heads of these tasks, a scalar in nats.

    A network without variational weights has a KL of 0.
    """
    terms = [weights.kl() for weights in variational_weights(network, tasks)]
    return torch.stack(terms).sum() if terms else torch.zeros(())


def consolidate(network: nn.Module, tasks: Collection[int]) -> None:
    """Make the posterior of the body and of the heads of these tasks the prior."""
    for weights in variational_weights(network, tasks):
        weights.consolidate()


def restart_noise(network: nn.Module, tasks: Collection[int]) -> None:
    """Reset the noise of the body and of these heads to its size before the first task."""
    for weights in variational_weights(network, tasks):
        weights.restart_noise()
