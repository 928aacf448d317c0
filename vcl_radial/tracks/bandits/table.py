"""A table of a bandit: the contexts, and what decides the rewards of the actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Table:
    """Contexts and the labels that decide their rewards.

    Attributes:
        name: name of the data set.
        contexts: `[n, ...]`, as they are kept in memory.
        labels: int64 `[n]`: the best action; for a mushroom, 1 if it is poisonous; `[n, 0]` where
            the rewards are numbers (`environment`).
        actions: number of actions, K.
        rows: number of rows in the file, including rows that are left out.
        encode: function from rows of `contexts` to what an agent sees, float32 `[m, d]`.
    """

    name: str
    contexts: Tensor
    labels: Tensor
    actions: int
    rows: int = 0
    encode: Callable[[Tensor], Tensor] = Tensor.float


def standardised(columns: Tensor) -> Tensor:
    """Columns `[n, d]` with mean 0 and variance 1; constant columns become 0."""
    scale, mean = torch.std_mean(columns, dim=0, correction=0)
    return (columns - mean) / torch.where(scale > 0, scale, 1.0)
