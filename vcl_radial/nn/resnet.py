"""A small residual network for photographs, as a body for heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from vcl_radial.errors import bad_value
from vcl_radial.nn.conv import PointConv2d

_BLOCKS: Final = (2, 4, 8)
"""Multiples of the channels; every block halves the places."""

_FEW: Final = 8
"""Channels, as many as AVX2 computes at once."""


class ResNet(nn.Module):
    """Features `[B, 16 channels]` of images `[B, C, H, W]`: mean and maximum over all places.

    A convolution of 5x5 and step 2 with C channels, then three residual blocks of 2C, 4C and 8C
    channels (He et al. 2016, Fig. 2, shortcuts of option B). Each halves the places. With C = 16
    and three colours there are 302,256 weights.

    Every convolution is followed by batch normalisation (Ioffe and Szegedy 2015, Eq. 1) without
    scales and shifts that are learnt: all weights are those of convolutions, and so have a
    posterior. Its means and variances are running averages over the batches of training, which go
    on from task to task. Normalisation image by image removes what a few lesions add to a channel.

    Args:
        shape: of one image, (C, H, W).
        channels: C, of the first convolution.

    Raises:
        UserError: the inputs are no images.
    """

    def __init__(self, shape: Sequence[int], channels: int = 16) -> None:
        super().__init__()
        if len(shape) != 3:
            raise bad_value(
                "network",
                "resnet",
                f"wants images [C, H, W], and these inputs are {list(shape)}: choose another",
            )
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
    """norm(W * x), over places in steps."""

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
        # Of few channels every other place is taken beforehand, which is the same and slower: with
        # a step of 2, oneDNN's gradient of 2 to 6 channels writes beyond its memory where a
        # processor has AVX2 alone.
        self.before = 2 if inputs < _FEW else 1
        self.shortcut = _Convolution(inputs, outputs, 1, 2 // self.before)

    def forward(self, x: Tensor) -> Tensor:
        inner = relu(self.first(x), inplace=True)
        # The gradient of a slice, even of all of it, loses the order of the channels.
        places = x if self.before == 1 else x[:, :, :: self.before, :: self.before]
        shortcut = self.shortcut(places)
        return relu(self.second(inner) + shortcut, inplace=True)
