"""Set weights to zero, in ascending order of the signal-to-noise ratio.

    ratio_i = |mean_i| / sigma_i

The share p of all weights and biases of the network with the lowest ratios is set to zero, and the
test images are classified with the remaining weights (Kessler et al. 2020, section 4; Blundell et
al. 2015, section 5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import dropout, linear, relu

from vcl_radial.likelihoods.predict import log_predictive
from vcl_radial.metrics import accuracy

SHARES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 96, 97, 98, 99, 99.2, 99.5, 99.7, 99.9)
"""Pruned shares in per cent, as in the authors' published notebook."""


@dataclass(frozen=True)
class Trained:
    """A network of fully connected layers whose weights have means and standard deviations.

    Attributes:
        means: means of the weights `[out, in]` and the biases `[out]` of each layer in turn.
        scales: standard deviations in the same order; None if the method gives no order.
        dropout: dropout rate in a prediction.
        samples: number of masks in a prediction.
    """

    means: Sequence[Tensor]
    scales: Sequence[Tensor] | None
    dropout: float = 0.0
    samples: int = 1


def signal_to_noise(means: Sequence[Tensor], scales: Sequence[Tensor] | None) -> list[Tensor]:
    """|mean| / sigma of every weight and bias; |mean| without scales, as if each sigma were 1."""
    if scales is None:
        return [mean.abs() for mean in means]
    return [mean.abs() / scale for mean, scale in zip(means, scales, strict=True)]


def pruned(means: Sequence[Tensor], ratios: Sequence[Tensor], share: float) -> list[Tensor]:
    """The network with the given share of its weights, in per cent, at zero."""
    flat = torch.cat([ratio.flatten() for ratio in ratios])
    kept = torch.ones_like(flat)
    kept[flat.argsort(stable=True)[: int(share / 100 * len(flat))]] = 0
    masks = torch.split(kept, [mean.numel() for mean in means])
    return [mean * mask.view_as(mean) for mean, mask in zip(means, masks, strict=True)]


def logits(parameters: Sequence[Tensor], x: Tensor, rate: float = 0.0) -> Tensor:
    """Outputs `[B, C]` of a ReLU network at inputs `[B, D]`, hidden units dropped at this rate."""
    *hidden, weight, bias = parameters
    for hidden_weight, hidden_bias in zip(hidden[::2], hidden[1::2], strict=True):
        x = dropout(relu(linear(x, hidden_weight, hidden_bias)), rate)
    return linear(x, weight, bias)


def accuracies(
    trained: Trained, scales: Sequence[Tensor] | None, x: Tensor, labels: Tensor
) -> list[float]:
    """Test accuracy in per cent at every share of `SHARES`, pruned by the ratio to these scales."""
    ratios = signal_to_noise(trained.means, scales)
    scores = []
    for share in SHARES:
        parameters = pruned(trained.means, ratios, share)
        classify = partial(logits, parameters, rate=trained.dropout)
        scores.append(accuracy(log_predictive(classify, x, trained.samples), labels))
    return scores
