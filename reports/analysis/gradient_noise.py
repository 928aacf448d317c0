"""The noise of a gradient that is estimated from draws of the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from vcl_radial.likelihoods.objectives import categorical_nll
from vcl_radial.nn import posterior_blocks

Gradient = Callable[[], Sequence[Tensor]]
"""A function that draws the weights and returns the gradient, a tensor for each parameter."""


def nll_gradient(network: nn.Module, x: Tensor, y: Tensor) -> Gradient:
    """The gradient of the NLL of a batch in all means, under one draw of the weights."""
    means = [block.mean for block in posterior_blocks(network, [0])]
    return lambda: torch.autograd.grad(categorical_nll(network(x), y), means)


def gradient_variance(gradient: Gradient, pairs: int) -> tuple[float, float]:
    """Variance of a gradient over the draws of the weights, summed over its entries.

    V = tr Cov(g) = E ||g - g'||^2 / 2   for two independent draws g and g'

    Args:
        gradient: function that returns an independent draw at each call.
        pairs: number of pairs of draws to average over; unbiased for any number.

    Returns:
        The estimate and its standard error (nan for one pair).
    """
    halves = torch.tensor([_half_squared_distance(gradient(), gradient()) for _ in range(pairs)])
    error = float(halves.std() / math.sqrt(pairs)) if pairs > 1 else math.nan
    return float(halves.mean()), error


def _half_squared_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    pairs = zip(first, second, strict=True)
    return sum(float((a - b).square().sum(dtype=torch.float64)) for a, b in pairs) / 2
