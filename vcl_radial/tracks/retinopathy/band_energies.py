"""A reference that predicts from texture alone, with almost nothing to learn."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate

_SMALLEST = 4
"""Pixels along an edge of the last image of a pyramid."""

_FLOOR = 1e-3
"""Constant added to energies of normalised images, so that a flat image has a logarithm."""


class BandEnergies(nn.Module):
    """Energies of each colour channel in every octave of spatial frequencies.

    g_0 = x,   g_{k+1} = means of 2x2 pixels of g_k,   b_k = g_k - g_{k+1} at the size of g_k:
    the Laplacian pyramid of Burt and Adelson (1983), with boxes in place of Gaussians. Features
    are log mean |b_k| and log sd b_k of each channel and octave, and mean and sd of the last g_k,
    standardised over the training images. With an output head this is logistic regression: only
    the head is trained.

    Args:
        shape: shape of an image, `[C, H, W]`; K octaves give `2 C (K + 1)` features.
    """

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        channels, *edges = shape
        self.octaves = max(0, (min(edges) // _SMALLEST).bit_length() - 1)
        # Without momentum the mean is over all batches so far, not mainly over recent batches.
        self.standardise = nn.BatchNorm1d(
            2 * channels * (self.octaves + 1), affine=False, momentum=None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Features `[B, 2 C (K + 1)]` of images `[B, C, H, W]`."""
        parts = []
        for _ in range(self.octaves):
            coarse = avg_pool2d(x, 2, ceil_mode=True)
            band = x - interpolate(coarse, size=x.shape[-2:], mode="bilinear")
            mean, sd = band.abs().mean((2, 3)), band.std((2, 3))
            parts += [(mean + _FLOOR).log(), (sd + _FLOOR).log()]
            x = coarse
        parts += [x.mean((2, 3)), x.std((2, 3))]
        features: Tensor = self.standardise(torch.cat(parts, 1))
        return features
