"""Likelihoods and the variational objective, on one scale.

Every loss of the suite is measured in nats per training point:

    L = E_q[ -log p(y | x, w) ]  averaged over points  +  kl_weight * KL(q || p) / N

with the KL summed over all weights and N the number of training points of the task. The expectation
of L depends neither on the batch size nor on the number of weight samples. L is the negative
evidence lower bound divided by N (Farquhar, Osborne and Gal 2020, Eq. 1).
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import cross_entropy


def categorical_nll(logits: Tensor, labels: Tensor) -> Tensor:
    """-log p(y | x) averaged over samples and points, a scalar in nats.

    Shapes: logits `[S, B, C]` (one slice per weight sample) or `[B, C]`, labels `[B]`.
    """
    if logits.dim() == labels.dim() + 1:
        return cross_entropy(logits, labels)
    return cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)))


def gaussian_nll(mean: Tensor, targets: Tensor, noise: float | Tensor) -> Tensor:
    """-log N(y; mean, noise^2) averaged over samples and points, a scalar in nats.

    Shapes: mean `[..., B]`, targets `[B]`; `noise` is a standard deviation.
    """
    log_noise = noise.log() if isinstance(noise, Tensor) else math.log(noise)
    square = ((targets - mean) / noise).square()
    return (0.5 * square + log_noise + 0.5 * math.log(2 * math.pi)).mean()


def per_point(nats: Tensor, points: int, weight: float = 1.0) -> Tensor:
    """Scale a term in the weights to nats per training point: weight * nats / N."""
    return nats * (weight / points)
