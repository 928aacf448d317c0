"""Predictions of a method for photographs, under draws of its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from vcl_radial.data.fundus import (
    REFERABLE_FROM,
    FundusData,
    Normalisation,
    evaluation_batches,
)
from vcl_radial.data.fundus.data import RowNumbers
from vcl_radial.data.fundus.table import GRADES
from vcl_radial.methods.base import Method

EVAL_BATCH: Final = 128


def predict(
    method: Method,
    data: FundusData,
    rows: RowNumbers,
    *,
    normalisation: Normalisation,
    samples: int,
    seed: int,
    batch_size: int = EVAL_BATCH,
    device: torch.device | str = "cpu",
    on_batch: Callable[[], None] = lambda: None,
) -> Tensor:
    """Log-probabilities of healthy and referable under S draws, `[S, N, 2]` float32 on the CPU.

    The draws depend on the seed alone, and all photographs share each draw. The random numbers of
    training do not change. A batch is at most as large as a training batch, so that it fits into
    memory.
    """
    parts = []
    for batch in evaluation_batches(
        data, rows, min(batch_size, EVAL_BATCH), normalisation=normalisation, device=device
    ):
        x = batch.x
        if x.ndim == 4:  # in the memory format of the convolutions, once for all draws
            x = x.contiguous(memory_format=torch.channels_last)
        outputs = method.draws(x, samples=samples, seed=seed)
        parts.append(referable_log_probabilities(outputs.float().log_softmax(-1)).cpu())
        on_batch()
    return torch.cat(parts, 1)


def referable_log_probabilities(log_probabilities: Tensor) -> Tensor:
    """Log-probabilities `[..., 2]` of healthy and referable, from all levels' `[..., 5]`.

    Log-probabilities of the two classes, `[..., 2]`, are returned unchanged.
    """
    if log_probabilities.shape[-1] == 2:
        return log_probabilities
    sizes = [REFERABLE_FROM, len(GRADES) - REFERABLE_FROM]
    healthy, referable = torch.split(log_probabilities, sizes, dim=-1)
    return torch.stack([healthy.logsumexp(-1), referable.logsumexp(-1)], dim=-1)


def probability(log_draws: Tensor) -> Tensor:
    """Mean probability of class 1 over the draws, `[N]`, double precision."""
    return log_draws[..., 1].double().exp().mean(0)
