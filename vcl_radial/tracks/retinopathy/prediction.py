"""What a network says about photographs, under draws of its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor, nn

from vcl_radial.data.fundus import FundusData, Normalisation, evaluation_batches
from vcl_radial.data.fundus.data import Places
from vcl_radial.nn.weights import held_scales
from vcl_radial.predict import own_randomness

EVAL_BATCH: Final = 128


@torch.no_grad()
def predict(
    network: nn.Module,
    data: FundusData,
    rows: Places,
    *,
    normalisation: Normalisation,
    samples: int,
    seed: int,
    batch_size: int = EVAL_BATCH,
    device: torch.device | str = "cpu",
    on_batch: Callable[[], None] = lambda: None,
) -> Tensor:
    """Log-probabilities of both classes under S draws, `[S, N, 2]` float32 on the CPU.

    The draws follow from the seed alone, and each serves all photographs (with dropout: those at
    one place of their batches). Training's randomness is left as it is, and the network in the mode
    that it was in. A batch is at most as large as one of training, into whose memory it then fits.
    """
    device, was_training = torch.device(device), network.training
    network.eval()
    found = []
    with held_scales(network):
        for batch in evaluation_batches(
            data, rows, min(batch_size, EVAL_BATCH), normalisation=normalisation, device=device
        ):
            with own_randomness(seed, device):
                draws = [network(batch.x).float().log_softmax(-1) for _ in range(samples)]
            found.append(torch.stack(draws).cpu())
            on_batch()
    network.train(was_training)
    return torch.cat(found, 1)


def probability(log_draws: Tensor) -> Tensor:
    """Mean probability of class 1 over the draws, `[N]`, double precision."""
    return log_draws[..., 1].double().exp().mean(0)


def together(members: Sequence[Tensor]) -> Tensor:
    """All draws of an ensemble's members, `[S, N, C]` each, as draws of one mixture."""
    return torch.cat(list(members))
