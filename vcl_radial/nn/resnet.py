"""A small residual network for photographs, as a body for heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from vcl_radial.nn.conv import PointConv2d, check_images

_BLOCKS: Final = (2, 4, 8)
"""Multiples of the channels per block; every block halves height and width."""

_FEW: Final = 8
"""Number of channels that AVX2 computes at a time."""


class ResNet(nn.Module):
    """Features `[B, 16 channels]` of images `[B, C, H, W]`: mean and maximum over all positions.

    A convolution of 5x5 and step 2 with C channels, then three residual blocks of 2C, 4C and 8C
    channels (He et al. 2016, Fig. 2, shortcuts of option B). Each halves height and width. With
    C = 16 and three colours there are 302,256 weights.

    Batch normalisation (Ioffe and Szegedy 2015, Eq. 1) without learned scales and shifts follows
    every convolution: all weights belong to convolutions, and so have a posterior. Its means and
    variances are running averages over the batches of training, and continue from task to task.
    Normalisation per image would remove the contribution of a few lesions to a channel.

    Args:
        shape: shape of one image, (C, H, W).
        channels: C, the channels of the first convolution.

    Raises:
        UserError: The inputs are not images.
    """

    def __init__(self, shape: Sequence[int], channels: int = 16) -> None:
        super().__init__()
        check_images("resnet", shape)
        self.stem = _Convolution(shape[0], channels, 5, 2)
        inputs = channels
        self.blocks = nn.ModuleList()
        for multiple in _BLOCKS:
            self.blocks.append(_Block(inputs, multiple * channels))
            inputs = multiple * channels

    def forward(self, x: Tensor) -> Tensor:
        """The features of images."""
        # Channels last are faster on a CPU; the convolutions keep the order of their input.
        x = relu(self.stem(x.contiguous(memory_format=torch.channels_last)), inplace=True)
        for block in self.blocks:
            x = block(x)
        return torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)


class _Convolution(nn.Module):
    """A convolution with a stride and normalisation, norm(W * x)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, step: int) -> None:
        super().__init__()
        self.weights = PointConv2d(inputs, outputs, kernel, step, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        normalised: Tensor = self.norm(self.weights(x))
        return normalised


class _Block(nn.Module):
    """y = relu(norm(W2 * relu(norm(W1 * x))) + norm(W0 * x)), with steps of 2 in W0 and W1."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = _Convolution(inputs, outputs, 3, 2)
        self.second = _Convolution(outputs, outputs, 3, 1)
        # With few channels a slice takes every second position, which is equivalent but slower:
        # with a stride of 2, oneDNN's gradient of 2 to 6 channels writes beyond its memory on
        # processors with AVX2 only.
        self.slice_step = 2 if inputs < _FEW else 1
        self.shortcut = _Convolution(inputs, outputs, 1, 2 // self.slice_step)

    def forward(self, x: Tensor) -> Tensor:
        inner = relu(self.first(x), inplace=True)
        # The gradient of a slice, even of the whole tensor, loses the order of the channels.
        strided = x if self.slice_step == 1 else x[:, :, :: self.slice_step, :: self.slice_step]
        shortcut = self.shortcut(strided)
        return relu(self.second(inner) + shortcut, inplace=True)
