"""The posterior of a whole network: its KL to the prior, and how it becomes the next prior."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import PosteriorBlock, VariationalWeights
from vcl_radial.posteriors import Posterior


def variational_weights(network: nn.Module, tasks: Collection[int]) -> Iterator[VariationalWeights]:
    """The variational weights that these tasks use: the body's, and those of their heads."""
    if isinstance(network, VariationalWeights):
        yield network
    elif isinstance(network, MultiHead):
        for task in sorted(tasks):
            yield from variational_weights(network.head(task), tasks)
    else:
        for child in network.children():
            yield from variational_weights(child, tasks)


def kl_divergence(network: nn.Module, tasks: Collection[int], value: bool = True) -> Tensor:
    """KL(q || p) of the body and of the heads of these tasks, a scalar in nats.

    A network without variational weights has a KL of 0.

    Args:
        network: any module with variational weights in it.
        tasks: those whose heads count.
        value: without it the result is 0 and only its gradient is that of the KL, where the
            families have that in closed form: for a training step whose loss nobody reads.
    """
    weights = list(variational_weights(network, tasks))
    if not weights:
        return torch.zeros(())
    if value:
        return torch.stack([w.kl() for w in weights]).sum()
    blocks = [block for w in weights for block in w.posterior_blocks()]
    groups: dict[tuple[type[Posterior], type[Posterior]], list[PosteriorBlock]] = {}
    for block in blocks:
        groups.setdefault((block.family, block.prior_family), []).append(block)
    terms = [
        _KLGradient.apply(group, *(p for block in group for p in (block.mean, block.rho)))
        if family.kl_gradients(prior, []) is not None
        else torch.stack([block.kl() for block in group]).sum()
        for (family, prior), group in groups.items()
    ]
    return torch.stack(terms).sum()


class _KLGradient(torch.autograd.Function):
    """0 with the gradient of the summed KL of blocks of one family to priors of one family."""

    @staticmethod
    def forward(ctx: Any, blocks: Sequence[PosteriorBlock], *parameters: Tensor) -> Tensor:
        ctx.blocks = blocks
        # The draw of this step has already computed them.
        ctx.scales = [block.scale() for block in blocks]
        ctx.save_for_backward(*parameters)
        return parameters[0].new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        blocks: Sequence[PosteriorBlock] = ctx.blocks
        parameters = ctx.saved_tensors
        means, rhos = parameters[::2], parameters[1::2]
        pairs = [
            ((mean - block.prior_mean).div_(block.prior_scale), scale / block.prior_scale)
            for block, mean, scale in zip(blocks, means, ctx.scales, strict=True)
        ]
        gradients = blocks[0].family.kl_gradients(blocks[0].prior_family, pairs)
        assert gradients is not None
        result: list[Tensor | None] = [None]
        for block, rho, (grad_a, grad_s) in zip(blocks, rhos, gradients, strict=True):
            factor = grad / block.prior_scale
            result += [grad_a.mul_(factor), grad_s.mul_(factor).mul_(rho.sigmoid())]
        return tuple(result)


def consolidate(network: nn.Module, tasks: Collection[int]) -> None:
    """Make the posterior of the body and of the heads of these tasks the prior."""
    for weights in variational_weights(network, tasks):
        weights.consolidate()
