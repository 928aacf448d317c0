"""The scale-mixture prior of Blundell et al. (2015)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vcl_radial.errors import UserError


class ScaleMixture:
    """Mixture of two zero-mean Gaussians for each weight (Blundell et al. 2015, Eq. 7).

    p(w) = prod_i [ pi N(w_i; 0, scale1^2) + (1 - pi) N(w_i; 0, scale2^2) ]

    A prior only. No family has a closed form for it, so the KL to it is a Monte-Carlo estimate.

    Args:
        pi: Weight of the first component, strictly between 0 and 1.
        scale1: Standard deviation of the first component.
        scale2: Standard deviation of the second component.

    Raises:
        UserError: If a value is out of its range.
    """

    def __init__(self, pi: float, scale1: float, scale2: float) -> None:
        if not 0 < pi < 1:
            raise UserError(f"pi must lie strictly between 0 and 1, got {pi}")
        for name, scale in (("scale1", scale1), ("scale2", scale2)):
            if not 0 < scale < math.inf:
                raise UserError(f"{name} must be positive and finite, got {scale}")
        self.pi = pi
        self.scale1 = scale1
        self.scale2 = scale2

    def log_prob(self, w: Tensor) -> Tensor:
        """Log density in nats of w, shape [..., D], summed over the last axis; shape [...]."""
        first = math.log(self.pi) + _log_normal(w, self.scale1)
        second = math.log1p(-self.pi) + _log_normal(w, self.scale2)
        return torch.logaddexp(first, second).sum(-1, dtype=torch.float64).to(w.dtype)


def _log_normal(w: Tensor, scale: float) -> Tensor:
    """Log N(w; 0, scale^2) for each weight."""
    return -(w / scale).square() / 2 - math.log(scale * math.sqrt(2 * math.pi))
