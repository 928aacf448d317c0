"""The convolutional network of the split CIFAR benchmarks, as a body for heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, max_pool2d, relu

from vcl_radial.nn.conv import PointConv2d, check_images
from vcl_radial.nn.linear import PointLinear

_CHANNELS: Final = (32, 64)
"""Channels of the two convolutions in each block."""

_FEATURES: Final = 512
_SMALLEST: Final = 8
_LARGEST_MAP: Final = 8


class ConvNet(nn.Module):
    """Features `[B, 512]` of images `[B, C, H, W]`, from four convolutions and a dense layer.

    Two convolutions of 32 channels and two of 64, 3x3 with a margin of zeros, a 2x2 max pool after
    each pair, then a dense layer of 512 units; a ReLU follows every layer. Weights start as in
    `MLP`. For images of 32x32 this is the network of Zenke et al. (2017), section 5.3, without its
    dropout. For larger images, the maps after the second pool are averaged down to 8x8, so that the
    dense layer does not grow with the image.

    Args:
        shape: shape of one image, (C, H, W).
        channels: channels of the two convolutions in each of the two blocks.

    Raises:
        UserError: The inputs are not images, or are smaller than 8x8.
    """

    def __init__(self, shape: Sequence[int], channels: Sequence[int] = _CHANNELS) -> None:
        super().__init__()
        check_images("convnet", shape, _SMALLEST)
        inputs, *size = shape
        self.blocks = nn.ModuleList()
        for outputs in channels:
            first = PointConv2d(inputs, outputs, 3, padding=1)
            second = PointConv2d(outputs, outputs, 3, padding=1)
            self.blocks.append(nn.ModuleList([first, second]))
            inputs = outputs
            size = [length // 2 for length in size]
        self.map_size = [min(length, _LARGEST_MAP) for length in size]
        self.shrinks = self.map_size != size
        self.dense = PointLinear(inputs * self.map_size[0] * self.map_size[1], _FEATURES)

    def forward(self, x: Tensor) -> Tensor:
        """The features of images."""
        # Not `len`, which an export cannot trace for any number of images.
        if (
            x.shape[0] > 1
        ):  # a single image may come from `torch.vmap`, which supports no other order
            # Channels last are faster on a CPU; the convolutions keep the order of their input.
            x = x.contiguous(memory_format=torch.channels_last)
        for block in self.blocks:
            for layer in block:  # type: ignore[attr-defined]
                x = relu(layer(x), inplace=True)
            x = max_pool2d(x, 2)
        if self.shrinks:
            x = adaptive_avg_pool2d(x, self.map_size)  # type: ignore[arg-type]
        return relu(self.dense(x.flatten(1)), inplace=True)
