"""Dropout in training and in prediction."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from vcl_radial.errors import bad_value


class MCDropout(nn.Module):
    """Dropout in both training and prediction (Gal and Ghahramani 2016).

    Each number is set to 0 with probability `p`; the others are multiplied by 1 / (1 - p). Every
    call draws a new mask, so that calls are samples of the prediction.

    Args:
        p: probability of dropping a number, from 0 to below 1.
        features: number of features of an input, for `draw_mask`.
    """

    mask: Tensor | None = None
    """A fixed mask; if set, it multiplies inputs `[B, features]` in place of a drawn mask."""

    def __init__(self, p: float, features: int | None = None) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise bad_value("dropout", p, "must be from 0 to below 1")
        self.p, self.features = p, features

    def forward(self, x: Tensor) -> Tensor:
        """Drop numbers of x."""
        return dropout(x, self.p, training=True) if self.mask is None else x * self.mask

    def draw_mask(self, n: int, rows: int, generator: torch.Generator) -> Tensor:
        """Draw masks of n passes, `[n, rows, features]`; all rows of a batch can share one row."""
        assert self.features is not None
        mask = torch.empty(n, rows, self.features).bernoulli_(1 - self.p, generator=generator)
        return mask.div_(1 - self.p)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"
