"""What the camera alone tells of a photograph: two references that see no lesion.

A hospital that sends its ill patients to another camera makes a data set in which the camera tells
who is ill. A network is worth what it knows beyond these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, max_pool2d

_GRID: Final = 16
_LIT: Final = 0.25
"""How far from the value in the corner a pixel of the field is, in standard deviations of all."""
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_HIDDEN: Final = 64


class Silhouette(nn.Module):
    """The shape of the field of view, and a hidden layer of 64.

    A pixel is lit where a channel is further than 0.25 from that of the first corner. Gaps are
    closed, so that nothing is seen of what lies within the field, and the share of lit pixels is
    taken in each of 16 x 16 cells.

    Args:
        shape: of an image, `[C, H, W]`.
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
        """The largest value within reach, along one axis after the other."""
        window, reach = 2 * self.reach + 1, self.reach
        return max_pool2d(max_pool2d(x, (window, 1), 1, (reach, 0)), (1, window), 1, (0, reach))

    def forward(self, x: Tensor) -> Tensor:
        """Features `[B, 64]` of images `[B, C, H, W]`."""
        features: Tensor = self.hidden(self.cells(x).flatten(1) - 0.5)
        return features


class Colour(nn.Module):
    """Mean, standard deviation and quantiles of each channel, and a hidden layer of 64.

    The quantiles are those at 5, 25, 50, 75 and 95 %; all are standardised over the training part.

    Args:
        shape: of an image, `[C, H, W]`.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        count = shape[0] * (2 + len(_QUANTILES))
        # Without momentum it is the mean over all batches so far, not over the last ones.
        self.standardise = nn.BatchNorm1d(count, affine=False, momentum=None)
        self.hidden = nn.Sequential(nn.Linear(count, _HIDDEN), nn.ReLU())

    @staticmethod
    def statistics(x: Tensor) -> Tensor:
        """Those of images `[B, C, H, W]`: `[B, 7 C]`, the means first."""
        values = x.float().flatten(2)
        levels = torch.tensor(_QUANTILES, device=x.device)
        quantiles = values.quantile(levels, dim=2)
        return torch.cat([values.mean(2), values.std(2), *quantiles], 1)

    def forward(self, x: Tensor) -> Tensor:
        """Features `[B, 64]` of images `[B, C, H, W]`."""
        features: Tensor = self.hidden(self.standardise(self.statistics(x)))
        return features
