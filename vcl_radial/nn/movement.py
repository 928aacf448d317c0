"""The start of a posterior and its distance from its prior, layer by layer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vcl_radial.nn.carry import variational_weights
from vcl_radial.nn.heads import MultiHead
from vcl_radial.nn.weights import VariationalWeights

AT_REST = 0.1
"""A unit is at rest if its weights moved by less than this, measured as `LayerMovement.moved`."""


class LayerMovement(NamedTuple):
    """The distance of a layer's posterior from its prior, in units that fit every family.

    The noise of a weight is the standard deviation of its draws: the scale of a Gaussian, and
    scale / sqrt(D) of a radial posterior.
    """

    layer: str
    """the name in the network; `head` for the head of any task"""
    kl: float
    """KL(q || p) in nats"""
    moved: float
    """root mean square over the weights of |mean - mean_p| / noise_p"""
    noise: float
    """geometric mean of the noise of a weight"""
    noise_to_prior: float
    """geometric mean of noise / noise_p"""
    units_at_rest: float
    """per cent of the units whose incoming weights have moved by less than `AT_REST`"""


class LayerStart(NamedTuple):
    """The noise that a layer starts with."""

    layer: str
    """the name in the network, as in `LayerMovement.layer`"""
    scale: float
    """sigma, geometric mean"""
    group_size: int
    """D, the weights of a group"""
    noise: float
    """standard deviation of the noise of one weight, sqrt(E||w - mean||^2 / D), geometric mean"""

    def __str__(self) -> str:
        """One line for a terminal."""
        return (
            f"{self.layer}: sigma = {self.scale:.3g}, D = {self.group_size:,}, "
            f"noise of a weight = {self.noise:.3g}"
        )


@torch.no_grad()
def layer_starts(network: nn.Module) -> list[LayerStart]:
    """The noise in the body's layers and in a new head, one row per group size.

    Layers with other weights than blocks of a family are left out, as in `movement`.
    """
    layers = list(_layers(network, []))
    for name, module in network.named_modules():
        if isinstance(module, MultiHead):
            layers += [(name, weights) for _, weights in _layers(module.new_head(0), [])]
    starts = [
        LayerStart(
            layer,
            float(block.posterior.scale.double().log().mean().exp()),
            block.mean.shape[-1],
            float(block.weight_noise().double().log().mean().exp()),
        )
        for layer, weights in layers
        for block in weights.posterior_blocks()
    ]
    return list(dict.fromkeys(starts))


@torch.no_grad()
def movement(network: nn.Module, tasks: Collection[int]) -> list[LayerMovement]:
    """The movement of the body's layers and of the heads of these tasks, in the network's order.

    Layers with other weights than blocks of a family (not `VariationalWeights.all_in_blocks`) are
    left out.
    """
    return [_movement(layer, weights) for layer, weights in _layers(network, tasks)]


def _layers(network: nn.Module, tasks: Collection[int]) -> Iterator[tuple[str, VariationalWeights]]:
    """The layers whose weights are all in blocks of a family, with their names."""
    used = set(variational_weights(network, tasks))
    for name, module in network.named_modules():
        if module in used and isinstance(module, VariationalWeights) and module.all_in_blocks:
            yield re.sub(r"(\.heads\.\d+|\.output)?\.weights$", "", name), module


def _movement(layer: str, weights: VariationalWeights) -> LayerMovement:
    blocks = weights.posterior_blocks()
    noises = [block.weight_noise() for block in blocks]
    priors = [block.prior_noise() for block in blocks]
    moved = [(b.mean - b.prior_mean).abs() / p for b, p in zip(blocks, priors, strict=True)]
    ratios = [noise / prior for noise, prior in zip(noises, priors, strict=True)]
    unit_moves, _ = weights.split(moved)
    at_rest = unit_moves.flatten(1).square().mean(1).sqrt() < AT_REST
    return LayerMovement(
        layer,
        float(weights.kl()),
        float(_all(moved).square().mean().sqrt()),
        float(_all(noises).log().mean().exp()),
        float(_all(ratios).log().mean().exp()),
        100 * float(at_rest.double().mean()),
    )


def _all(blocks: list[Tensor]) -> Tensor:
    return torch.cat([block.flatten() for block in blocks]).double()
