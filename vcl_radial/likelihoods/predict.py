"""The Monte-Carlo predictive distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn


@contextmanager
def in_mode(network: nn.Module, *, training: bool) -> Iterator[None]:
    """Put a network in training or in evaluation mode inside; restore every module afterwards.

    A network in training mode may hold modules in evaluation mode, such as batch norms with fixed
    averages: they stay in evaluation mode. If all layers of a network are in evaluation mode, the
    network counts as in evaluation mode, whatever the mode of a wrapper around it.
    """
    modules = network.modules()
    if training:
        unchanged = network.training and any(m.training and not m._modules for m in modules)
    else:
        unchanged = not any(m.training for m in modules)
    if unchanged:
        yield
        return
    modes = [(module, module.training) for module in network.modules()]
    network.train(training)
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def seeded_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from a seeded generator inside, without a change of the global random sequence."""
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

    The weight samples depend on `seed` alone: the outputs of a row are the same in every batch, and
    drawing does not change the random state of training.

    Args:
        network: maps inputs `[B, ...]` to outputs `[B, C]` under a fresh draw of the weights.
        x: inputs `[B, ...]`.
        samples: S, the number of weight samples.
        seed: seed of the weight samples.
        differentiable: whether to keep the graph where gradients are enabled; the graph holds every
            sample.
    """
    keep_graph = differentiable and torch.is_grad_enabled()
    mode = in_mode(network, training=False) if isinstance(network, nn.Module) else nullcontext()
    with mode, torch.set_grad_enabled(keep_graph), seeded_rng(seed, x.device):
        return torch.stack([network(x) for _ in range(samples)])


def log_predictive(
    network: Callable[[Tensor], Tensor], x: Tensor, samples: int = 100, seed: int = 0
) -> Tensor:
    """The log-predictive: log p(y | x) = log 1/S sum_s softmax(f(x; w_s)), w_s ~ q(w).

    Args:
        network: maps inputs `[B, ...]` to logits `[B, C]` under a fresh draw of the weights.
        x: inputs `[B, ...]`.
        samples: S, the number of weight samples.
        seed: seed of the weight samples; see `draws`.

    Returns:
        Log-probabilities `[B, C]` in nats.
    """
    return draws(network, x, samples, seed).log_softmax(-1).logsumexp(0) - math.log(samples)


@torch.no_grad()
def sampling(log_draws: Tensor, log_probs: Tensor) -> Tensor:
    """The standard deviation, over draws, of the probability of the predicted class.

        100 sd_s p_s(c),   c = argmax_k sum_s p_s(k)

    with sd^2 = 1/(S-1) sum_s (p_s - mean)^2, whose expectation does not depend on S. It is 0 for a
    posterior that has shrunk to a point, and for a single draw.

    Args:
        log_draws: log-probabilities under S draws, `[S, B, C]` in nats.
        log_probs: their log-predictive, `[B, C]`.

    Returns:
        Per cent, `[B]`.
    """
    if len(log_draws) == 1:
        return torch.zeros_like(log_probs[:, 0])
    predicted = log_probs.argmax(-1, keepdim=True)
    log_p = log_draws.gather(-1, predicted.expand(len(log_draws), -1, -1))
    spread: Tensor = 100 * log_p[..., 0].exp().std(0)
    return spread
