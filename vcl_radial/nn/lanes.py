"""Many networks of one shape as lanes of one program: a leading axis on everything.

`Lanes` stacks the parameters that a task uses, body and head, of R networks into tensors
`[R, ...]`, draws their weights, and maps inputs to logits `[R, B, C]` by batched products.
`write_back` returns to each network what it has learnt: carrying a posterior forward, storing it
and scoring it are the business of single networks.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from vcl_radial.nn.carry import posterior_blocks, variational_weights
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import PosteriorBlock, softplus
from vcl_radial.posteriors import Posterior


@dataclass
class LaneBlock:
    """A `PosteriorBlock` of every lane; tensors `[R, groups, D]`."""

    family: type[Posterior]
    prior_family: type[Posterior]
    mean: Tensor
    rho: Tensor
    scale: Tensor
    prior_mean: Tensor
    prior_scale: Tensor

    def first(self, lanes: int) -> LaneBlock:
        """The first lanes, as views."""
        tensors = (self.mean, self.rho, self.scale, self.prior_mean, self.prior_scale)
        return LaneBlock(self.family, self.prior_family, *(t[:lanes] for t in tensors))


class Lanes:
    """R networks of one shape, as far as a task uses them.

    Args:
        networks: those whose parameters are stacked; equal but for the values.
        task: whose head.
    """

    def __init__(self, networks: Sequence[nn.Module], task: int) -> None:
        for network in networks:
            for module in network.modules():
                if isinstance(module, MultiHead):
                    module.adapt([task])
        self.networks, self.task = networks, task
        blocks = [posterior_blocks(network, [task]) for network in networks]
        self.blocks = [_stacked(same) for same in zip(*blocks, strict=True)]
        points = [_points(network, task) for network in networks]
        self.points = {
            name: torch.stack([lane[name].detach() for lane in points]) for name in points[0]
        }
        self._template = copy.deepcopy(networks[0]).requires_grad_(False)
        self._template_layers = list(variational_weights(self._template, [task]))

    def logits(
        self, x: Tensor, weights: Sequence[Tensor], points: dict[str, Tensor], *, shared: bool
    ) -> Tensor:
        """Logits `[lanes, B, C]` under drawn weights, of all lanes or the first ones.

        Shapes: x `[lanes, B, ...]`, or `[B, ...]` where it is `shared`; weights
        `[lanes, groups, D]` of each block, points `[lanes, ...]`.
        """
        per_lane = None if shared else 0
        # The layers hand out the weights that they are given only where gradients may be wanted.
        with torch.set_grad_enabled(True):
            mapped: Tensor = torch.vmap(self._logits_of_one, in_dims=(per_lane, 0, 0))(
                x, list(weights), points
            )
        return mapped

    @torch.no_grad()
    def write_back(self) -> None:
        """Give every network its lane's parameters."""
        for lane, network in enumerate(self.networks):
            for block, own in zip(self.blocks, posterior_blocks(network, [self.task]), strict=True):
                own.mean.copy_(block.mean[lane])
                own.rho.copy_(block.rho[lane])
            for name, own_point in _points(network, self.task).items():
                own_point.copy_(self.points[name][lane])

    def _logits_of_one(
        self, x: Tensor, weights: Sequence[Tensor], points: dict[str, Tensor]
    ) -> Tensor:
        left = iter(weights)
        for layer in self._template_layers:
            drawn = [next(left) for _ in layer.blocks]
            layer.sampler = lambda layer=layer, drawn=drawn: layer.split(drawn)
        logits: Tensor = functional_call(self._template, points, (x, self.task))
        return logits


def _stacked(blocks: Sequence[PosteriorBlock]) -> LaneBlock:
    def stack(name: str) -> Tensor:
        return torch.stack([getattr(block, name).detach() for block in blocks])

    rho = stack("rho")
    return LaneBlock(
        blocks[0].family,
        blocks[0].prior_family,
        stack("mean"),
        rho,
        softplus(rho),
        stack("prior_mean"),
        stack("prior_scale"),
    )


def _points(network: nn.Module, task: int) -> dict[str, nn.Parameter]:
    """The point estimates that a task uses, by name."""
    elsewhere = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, MultiHead)
        for head_task, head in module.heads.items()
        if int(head_task) != task
        for parameter in head.parameters()
    }
    in_blocks = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, PosteriorBlock)
        for parameter in module.parameters()
    }
    return {
        name: parameter
        for name, parameter in network.named_parameters()
        if id(parameter) not in elsewhere | in_blocks
    }
