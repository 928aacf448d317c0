"""Weights set to zero, those of the lowest signal-to-noise ratio first.

    ratio_i = |mean_i| / sigma_i

The share p of all weights and biases of the network with the lowest ratios is set to zero, and the
test images are classified with what is left (Kessler et al. 2020, section 4; Blundell et al. 2015,
section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import dropout, linear, relu

from vcl_radial.likelihoods.predict import log_predictive
from vcl_radial.metrics import accuracy

Layer: TypeAlias = tuple[Tensor, Tensor]
"""Numbers of a layer's weights `[out, in]` and biases `[out]`."""

SHARES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 96, 97, 98, 99, 99.2, 99.5, 99.7, 99.9)
"""Pruned, in per cent: those of the authors' published notebook."""


@dataclass(frozen=True)
class Trained:
    """A network of fully connected layers whose weights have means and standard deviations.

    Attributes:
        means: means of each layer.
        scales: standard deviations of each layer; None if the method gives no order.
        dropout: dropout rate in a prediction.
        samples: number of masks in a prediction.
    """

    means: Sequence[Layer]
    scales: Sequence[Layer] | None
    dropout: float = 0.0
    samples: int = 1


def signal_to_noise(means: Sequence[Layer], scales: Sequence[Layer] | None) -> list[Layer]:
    """|mean| / sigma of every weight and bias; |mean| without scales, as if each sigma were 1."""
    if scales is None:
        return [(weight.abs(), bias.abs()) for weight, bias in means]
    return [
        (weight.abs() / weight_scale, bias.abs() / bias_scale)
        for (weight, bias), (weight_scale, bias_scale) in zip(means, scales, strict=True)
    ]


def pruned(means: Sequence[Layer], ratios: Sequence[Layer], share: float) -> list[Layer]:
    """The network with the given share of its weights, in per cent, at zero."""
    flat = torch.cat([part.flatten() for layer in ratios for part in layer])
    kept = torch.ones_like(flat)
    kept[flat.argsort(stable=True)[: int(share / 100 * len(flat))]] = 0
    parts = iter(torch.split(kept, [part.numel() for layer in means for part in layer]))
    return [
        (weight * next(parts).view_as(weight), bias * next(parts).view_as(bias))
        for weight, bias in means
    ]


def logits(layers: Sequence[Layer], x: Tensor, rate: float = 0.0) -> Tensor:
    """Outputs `[B, C]` of a ReLU network at inputs `[B, D]`, hidden units dropped at this rate."""
    *hidden, (weight, bias) = layers
    for hidden_weight, hidden_bias in hidden:
        x = dropout(relu(linear(x, hidden_weight, hidden_bias)), rate)
    return linear(x, weight, bias)


def accuracies(
    trained: Trained, scales: Sequence[Layer] | None, x: Tensor, labels: Tensor
) -> list[float]:
    """Test accuracy in per cent at every share of `SHARES`, pruned by the ratio to these scales."""
    ratios = signal_to_noise(trained.means, scales)
    scores = []
    for share in SHARES:
        layers = pruned(trained.means, ratios, share)
        classify = partial(logits, layers, rate=trained.dropout)
        scores.append(accuracy(log_predictive(classify, x, trained.samples), labels))
    return scores
