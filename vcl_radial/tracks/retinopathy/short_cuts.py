"""Two references that predict from the camera alone and see no lesion.

If a hospital sends its ill patients to another camera, the camera reveals who is ill. The value of
a network is its gain over these references.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, max_pool2d

_GRID: Final = 16
_LIT: Final = 0.25
"""Minimum distance of a pixel of the field from the corner's value, in standard deviations."""
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_HIDDEN: Final = 64


class Silhouette(nn.Module):
    """The shape of the field of view, and a hidden layer of 64.

    A pixel is lit if a channel differs by more than 0.25 from the same channel in the first corner.
    Gaps are closed, so that the content of the field is not seen. Features are the shares of lit
    pixels in 16 x 16 cells.

    Args:
        shape: shape of an image, `[C, H, W]`.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        # An odd window of an eighth of the edge: the widest gap that is closed.
        self.reach = max(1, min(shape[1:]) // 16)
        self.hidden = nn.Sequential(nn.Linear(_GRID**2, _HIDDEN), nn.ReLU())

    def cells(self, x: Tensor) -> Tensor:
        """Shares of lit pixels `[B, 16, 16]` of images `[B, C, H, W]`."""
        lit = ((x - x[:, :, :1, :1]).abs().amax(1, keepdim=True) > _LIT).to(x.dtype)
        closed = -self._widened(-self._widened(lit))
        return adaptive_avg_pool2d(closed, _GRID)[:, 0]

    def _widened(self, x: Tensor) -> Tensor:
        """The largest value within reach, along both axes in turn."""
        window, reach = 2 * self.reach + 1, self.reach
        return max_pool2d(max_pool2d(x, (window, 1), 1, (reach, 0)), (1, window), 1, (0, reach))

    def forward(self, x: Tensor) -> Tensor:
        """Features `[B, 64]` of images `[B, C, H, W]`."""
        features: Tensor = self.hidden(self.cells(x).flatten(1) - 0.5)
        return features


class Colour(nn.Module):
    """Mean, standard deviation and quantiles of each channel, and a hidden layer of 64.

    The quantiles are at 5, 25, 50, 75 and 95 %; all are standardised over the training part.

    Args:
        shape: shape of an image, `[C, H, W]`.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        count = shape[0] * (2 + len(_QUANTILES))
        # Without momentum the mean is over all batches so far, not mainly over recent batches.
        self.standardise = nn.BatchNorm1d(count, affine=False, momentum=None)
        self.hidden = nn.Sequential(nn.Linear(count, _HIDDEN), nn.ReLU())

    @staticmethod
    def statistics(x: Tensor) -> Tensor:
        """Statistics `[B, 7 C]` of images `[B, C, H, W]`, the means first."""
        values = x.float().flatten(2)
        levels = torch.tensor(_QUANTILES, device=x.device)
        quantiles = values.quantile(levels, dim=2)
        return torch.cat([values.mean(2), values.std(2), *quantiles], 1)

    def forward(self, x: Tensor) -> Tensor:
        """Features `[B, 64]` of images `[B, C, H, W]`."""
        features: Tensor = self.hidden(self.standardise(self.statistics(x)))
        return features
