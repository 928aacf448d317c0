"""The Monte-Carlo predictive distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from a generator of one's own inside; outside, the sequence goes on undisturbed."""
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            torch.cuda.manual_seed(seed)
        yield


def draws(
    network: Callable[[Tensor], Tensor],
    x: Tensor,
    samples: int = 100,
    seed: int = 0,
    *,
    differentiable: bool = False,
) -> Tensor:
    """Outputs f(x; w_s) under draws of the weights w_s ~ q(w), `[S, B, C]`.

    The weight samples depend on `seed` alone: the outputs of a row are the same whichever batch it
    comes in, and drawing leaves the randomness of training untouched.

    Args:
        network: maps inputs `[B, ...]` to outputs `[B, C]` under a fresh draw of the weights.
        x: inputs `[B, ...]`.
        samples: S, the number of weight samples.
        seed: of the weight samples.
        differentiable: keep the graph, where gradients are wanted; it holds every sample.
    """
    wanted = differentiable and torch.is_grad_enabled()
    with torch.set_grad_enabled(wanted), own_randomness(seed, x.device):
        return torch.stack([network(x) for _ in range(samples)])


def log_predictive(
    network: Callable[[Tensor], Tensor], x: Tensor, samples: int = 100, seed: int = 0
) -> Tensor:
    """The log-predictive: log p(y | x) = log 1/S sum_s softmax(f(x; w_s)), w_s ~ q(w).

    Args:
        network: maps inputs `[B, ...]` to logits `[B, C]` under a fresh draw of the weights.
        x: inputs `[B, ...]`.
        samples: S, the number of weight samples.
        seed: of the weight samples; see `draws`.

    Returns:
        Log-probabilities `[B, C]` in nats.
    """
    return draws(network, x, samples, seed).log_softmax(-1).logsumexp(0) - math.log(samples)
