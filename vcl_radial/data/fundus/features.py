"""Features of photographs under EfficientNet-lite0, which ImageNet has trained.

phi(x) = mean, maximum and standard deviation over the places of the maps of blocks 2, 4, 10 and 14,
and mean and maximum of the last convolution: [N, 3664]. A lesion is small: the maximum keeps what a
mean over the photograph loses. The cache has them for every photograph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vcl_radial.data.backbones import LITE0, PACKAGE, required_weights
from vcl_radial.data.decoding import ReportProgress, print_progress, with_progress
from vcl_radial.data.feature_rows import Backbone, feature_rows
from vcl_radial.data.fundus.batches import Normalisation
from vcl_radial.data.fundus.data import FundusData, RowNumbers
from vcl_radial.files.reading import checksum, data_errors
from vcl_radial.nn.efficientnet_lite import BLOCKS, EfficientNetLite0

LAYERS: Final = (2, 4, 10, 14)
SIZE: Final = 3664
"""The number of features D."""

VERSION: Final = 1


def photograph_backbone() -> Backbone:
    """EfficientNet-lite0 as a map of squares `[B, 3, S, S]`, of 0 to 255, to rows `[B, 3664]`.

    Raises:
        UserError: the package with the weights is not installed.
        DataError: the file with the weights cannot be read.
    """
    path = required_weights()
    with data_errors(path, f"install {PACKAGE} again"):
        identity = [VERSION, "photographs", checksum(path)]

    def load() -> Callable[[Tensor], Tensor]:
        network = EfficientNetLite0().eval()
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        network.fused().to(memory_format=torch.channels_last)

        def features(images: Tensor) -> Tensor:
            x = (images.float() - 127) / 128
            x = x.contiguous(memory_format=torch.channels_last)
            *maps, last = network.maps(x, [*LAYERS, BLOCKS])
            over = [f(m) for m in maps for f in (_mean, _maximum, _deviation)]
            return torch.cat([*over, _mean(last), _maximum(last)], 1)

        return features

    return Backbone(LITE0, identity, load)


def _mean(x: Tensor) -> Tensor:
    return x.mean((2, 3))


def _maximum(x: Tensor) -> Tensor:
    return x.amax((2, 3))


def _deviation(x: Tensor) -> Tensor:
    return x.std((2, 3), correction=0)


def with_features(data: FundusData, report: ReportProgress = print_progress) -> FundusData:
    """The photographs with their features in place of pixels: `images` gives `[B, 3664]`.

    Raises:
        UserError: the package with the weights is not installed, or the cache cannot be written.
    """
    backbone, title = photograph_backbone(), f"{data.photographs.name}: features of photographs"

    def rows(images: Tensor) -> NDArray[np.float16]:
        made = feature_rows(backbone, images, title, report)
        return np.concatenate([*with_progress(made, len(images), title, report, size=len)])

    return data.mapped(rows)


@dataclass(frozen=True)
class FeatureNormalisation(Normalisation):
    """x -> (x - mean) / std, for each feature."""

    @classmethod
    def fit(cls, data: FundusData, rows: RowNumbers) -> FeatureNormalisation:
        """The normalisation with which these rows, the training set, have mean 0 and variance 1."""
        x = data.images(rows).double()
        mean, std = x.mean(0), x.std(0, correction=0)
        std[std < 1e-6] = 1.0  # a constant feature becomes 0
        return cls(tuple(mean.tolist()), tuple(std.tolist()))

    def __call__(self, images: Tensor) -> Tensor:
        """Normalise features `[B, D]`."""
        tensors = self._tensors.to(images.device)
        return (images.float() - tensors[0]) / tensors[1]

    @cached_property
    def _tensors(self) -> Tensor:
        return torch.tensor([self.mean, self.std])
