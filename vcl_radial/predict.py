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


def log_predictive(
    network: Callable[[Tensor], Tensor],
    x: Tensor,
    samples: int = 100,
    seed: int = 0,
    *,
    differentiable: bool = False,
) -> Tensor:
    """The log-predictive: log p(y | x) = log 1/S sum_s softmax(f(x; w_s)), w_s ~ q(w).

    The weight samples depend on `seed` alone: the prediction for a row is the same whichever
    batch it comes in, and predicting leaves the randomness of training untouched.

    Args:
        network: maps inputs `[B, ...]` to logits `[B, C]` under a fresh draw of the weights.
        x: inputs `[B, ...]`.
        samples: S, the number of weight samples.
        seed: of the weight samples.
        differentiable: keep the graph, where gradients are wanted; it holds every sample.

    Returns:
        Log-probabilities `[B, C]` in nats.
    """
    wanted = differentiable and torch.is_grad_enabled()
    with torch.set_grad_enabled(wanted), own_randomness(seed, x.device):
        draws = torch.stack([network(x).log_softmax(-1) for _ in range(samples)])
        return draws.logsumexp(0) - math.log(samples)
