"""The random changes of training images (Farquhar et al. 2020, Appendix D.1), batches at a time.

The paper's steps, with sides from -1 to 1 and all draws uniform:

    1. flip horizontally and vertically, each with probability 1/2
    2. rotate by up to 180 degrees in either direction
    3. pad by p, 0 to 5 % of the side, and crop back at a random place: a shift of up to 2 p
    4. crop a window of w = 90 to 110 % of the side at a random place, padded with zeros
    5. resize to the original size

Together they are one affine map from points in the result to points in the original. A point that
is outside after any step has the value of the surround of the field of view, which is 0 in the
paper. So each image is interpolated once instead of three times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import grid_sample


class Changes(NamedTuple):
    """The changes of each image of a batch.

    Attributes:
        flip: -1 where an axis is flipped, else 1; x and y, `[B, 2]`.
        angle: rotation, clockwise, in radians, `[B]`.
        shift: shift of the window over the image in step 3; x and y, `[B, 2]`.
        window: w, the window's side as a share of the image's, `[B]`.
        middle: middle of the window, x and y, `[B, 2]`.
    """

    flip: Tensor
    angle: Tensor
    shift: Tensor
    window: Tensor
    middle: Tensor


@dataclass(frozen=True)
class Augmentation:
    """Ranges of the changes of images; the paper's values by default.

    Attributes:
        rotation: the largest angle, in degrees, from 0 to 180.
        padding: the largest p, as a share of the side.
        crop: largest distance of w from 1.
    """

    rotation: float = 180.0
    padding: float = 0.05
    crop: float = 0.10

    def draw(self, batch: int, generator: torch.Generator) -> Changes:
        """Draw the changes of a batch, on the CPU: they are the same whatever the device."""

        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=generator)

        def symmetric(*shape: int) -> Tensor:
            return 2 * uniform(*shape) - 1

        flip = 1 - 2 * (uniform(batch, 2) < 0.5).float()
        angle = symmetric(batch) * math.radians(self.rotation)
        padding = self.padding * uniform(batch, 1)
        shift = 2 * padding * symmetric(batch, 2)
        window = 1 + self.crop * symmetric(batch)
        middle = (1 - window).abs()[:, None] * symmetric(batch, 2)
        return Changes(flip, angle, shift, window, middle)


def apply_changes(images: Tensor, changes: Changes, surround: float = 0.0) -> Tensor:
    """Change images `[B, 3, H, H]`; floating point, bilinear between pixels.

    Args:
        images: images with any values.
        changes: changes of these images.
        surround: value of pixels from outside of the image.
    """
    flip, angle, shift, window, middle = (c.to(images.device, torch.float32) for c in changes)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([cos, sin], 1), torch.stack([-sin, cos], 1)], 1)
    # The steps go backwards from points in the result: x4 = w x + middle, x3 = x4 + shift, then the
    # rotation and the flips. Columns and rows are independent until the rotation.
    columns, rows = (
        _before_rotation(pixels, window, middle[:, axis, None], shift[:, axis, None])
        for axis, pixels in enumerate((images.shape[3], images.shape[2]))
    )
    matrix = flip[:, :, None] * turn
    original = (
        columns[:, None, :, None] * matrix[:, None, None, :, 0]
        + rows[:, :, None, None] * matrix[:, None, None, :, 1]
    )
    return grid_sample(images - float(surround), original, align_corners=False).add_(surround)


def _before_rotation(pixels: int, window: Tensor, middle: Tensor, shift: Tensor) -> Tensor:
    """x3 of the centres of the pixels along an axis, `[B, pixels]`."""
    centres = (torch.arange(pixels, device=window.device) + 0.5) * (2 / pixels) - 1
    after_4 = window[:, None] * centres + middle
    after_3 = after_4 + shift
    inside = (after_4.abs() <= 1) & (after_3.abs() <= 1)
    # The point is so far away that no rotation brings it back into the image.
    return torch.where(inside, after_3, 10.0)
