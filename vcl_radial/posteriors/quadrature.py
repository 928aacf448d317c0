"""Gauss-Legendre quadrature."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor


@lru_cache(maxsize=16)
def gauss_legendre(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """`count` nodes and weights on [0, 1]; float64."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (
        torch.tensor((nodes + 1) / 2, dtype=torch.float64, device=device),
        torch.tensor(weights / 2, dtype=torch.float64, device=device),
    )
