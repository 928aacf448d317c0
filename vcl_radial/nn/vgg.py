"""VGG-16 with global pooling, the network of the retinopathy experiments."""

from __future__ import annotations

from typing import Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from vcl_radial.nn.conv import BayesianConv2d, PointConv2d
from vcl_radial.nn.convert import layer_settings
from vcl_radial.nn.heads import make_heads
from vcl_radial.nn.precision import features_in
from vcl_radial.nn.weights import LayerSettings
from vcl_radial.posteriors import Posterior

_BLOCKS: Final = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))
"""Multiples of the channels and numbers of layers (Simonyan and Zisserman 2015, Table 1, D)."""


class VGG(nn.Module):
    """Thirteen convolutions of 3x3 in five blocks, and an output head on their global pool.

    In place of VGG-16's fully connected layers, mean and maximum over all positions of the last
    block's channels are concatenated (Farquhar et al. 2020, Appendix D.1): `16 * channels` features
    for any size of the images. Max pooling separates the blocks. The outputs of the blocks have C,
    2C, 4C, 8C and 8C channels.

    | channels | weights    | what for                                                            |
    | -------- | ---------- | ------------------------------------------------------------------- |
    | 64       | 14,716,738 | point estimates: the paper's deterministic and dropout networks     |
    | 46       |  7,604,308 | Bayesian: 15,208,616 parameters, means and scales                   |
    | 16       |    921,298 | the small network: 1,842,596 parameters with scales. The paper says |
    |          |            | about 1.3M, which no count of this architecture gives               |

    Args:
        channels: C, the channels of the first block.
        classes: outputs of a head.
        posterior: settings of the variational family of all weights, or only its name;
            None or "none" for point estimates.
        first_stride: stride of the first convolution. It is 1 in the text of the paper, as in
            VGG-16, and 2 in the published code, which takes a quarter of the operations.
        precision: "bfloat16" computes the products of the body in bfloat16 (autocast); weights, KL
            and heads do not change.
    """

    def __init__(
        self,
        channels: int = 46,
        classes: int = 2,
        *,
        posterior: LayerSettings | str | type[Posterior] | None = "radial",
        first_stride: int = 1,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        super().__init__()
        settings = layer_settings(posterior)
        self.in_bfloat16 = precision == "bfloat16"

        def convolution(inputs: int, outputs: int, stride: int) -> nn.Module:
            if settings is None:
                return PointConv2d(inputs, outputs, 3, stride, padding=1)
            return BayesianConv2d(inputs, outputs, 3, stride, padding=1, posterior=settings)

        inputs, stride = 3, first_stride
        self.blocks = nn.ModuleList()
        for multiple, count in _BLOCKS:
            block = nn.ModuleList()
            for _ in range(count):
                block.append(convolution(inputs, multiple * channels, stride))
                inputs, stride = multiple * channels, 1
            self.blocks.append(block)
        self.head = make_heads(2 * inputs, classes, multi_head=False, posterior=settings)

    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Logits `[B, classes]` of images `[B, 3, H, W]` under one draw of the weights."""
        features = features_in(self.features, x, bfloat16=self.in_bfloat16)
        logits: Tensor = self.head(features, task)
        return logits

    def features(self, x: Tensor) -> Tensor:
        """Mean and maximum of the last block's channels over all places, `[B, 16 channels]`."""
        # Channels last are 1.4 times as fast on a CPU, and suit tensor cores; the convolutions keep
        # the order of their input.
        x = x.contiguous(memory_format=torch.channels_last)
        for k, block in enumerate(self.blocks):
            if k:
                # The last row or column of an odd size is kept, so that small images are possible.
                x = max_pool2d(x, 2, ceil_mode=True)
            for layer in block:  # type: ignore[attr-defined]
                x = relu(layer(x), inplace=True)
        return torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)
