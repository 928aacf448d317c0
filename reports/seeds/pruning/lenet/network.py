"""LeNet-5-Caffe (20-50-800-500) with point estimates, with an RDP, and with units left out.

conv 5x5 - max pool - conv 5x5 - max pool - fully connected - ReLU - fully connected
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear, max_pool2d, relu

from reports.seeds.pruning.lenet.size import CLASSES, KERNEL, WHOLE, Architecture
from reports.seeds.pruning.lenet.start import rdp_weights
from reports.seeds.pruning.settings import LeNetRecipe
from vcl_radial.nn import BayesianConv2d, BayesianLinear, PointConv2d, PointLinear
from vcl_radial.nn.grouping import Layer

NAMES = ("conv1", "conv2", "fc1", "fc2")
SETS = tuple(field.name for field in fields(Architecture))
"""Sets of units that can be left out: filters, filters, inputs of fc1, hidden units."""


class PointLeNet(nn.Module):
    """LeNet-5 with point estimates; maps `[B, 1, 28, 28]` to logits `[B, 10]`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = PointConv2d(1, WHOLE.conv1, KERNEL)
        self.conv2 = PointConv2d(WHOLE.conv1, WHOLE.conv2, KERNEL)
        self.fc1 = PointLinear(WHOLE.inputs, WHOLE.hidden)
        self.fc2 = PointLinear(WHOLE.hidden, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        hidden = max_pool2d(self.conv2(max_pool2d(self.conv1(x), 2)), 2).flatten(1)
        logits: Tensor = self.fc2(relu(self.fc1(hidden)))
        return logits


class BayesianLeNet(PointLeNet):
    """LeNet-5 with a posterior over each layer whose means are a point network's weights.

    Args:
        start: the point network.
        recipe: the initial values of the posteriors, see `rdp_weights`.
    """

    conv1: BayesianConv2d  # type: ignore[assignment]
    conv2: BayesianConv2d  # type: ignore[assignment]
    fc1: BayesianLinear  # type: ignore[assignment]
    fc2: BayesianLinear  # type: ignore[assignment]

    def __init__(self, start: PointLeNet, recipe: LeNetRecipe) -> None:
        super().__init__()
        self.conv1 = BayesianConv2d(1, WHOLE.conv1, KERNEL)
        self.conv2 = BayesianConv2d(WHOLE.conv1, WHOLE.conv2, KERNEL)
        self.fc1 = BayesianLinear(WHOLE.inputs, WHOLE.hidden)
        self.fc2 = BayesianLinear(WHOLE.hidden, CLASSES)
        for name in NAMES:
            point = getattr(start, name)
            weight, bias = point.weight.detach().clone(), point.bias.detach().clone()
            # The one input channel of conv1 is not a useful group: its column would be all weights.
            grouping = "row" if name == "conv1" else "double"
            getattr(self, name).weights = rdp_weights(weight, bias, grouping, recipe)

    @torch.no_grad()
    def means(self) -> dict[str, Layer]:
        """The posterior mean of each layer's weight and bias."""
        return {name: getattr(self, name).weights.mean() for name in NAMES}


@dataclass(frozen=True)
class Kept:
    """The kept units: booleans [20], [50], [800] and [500].

    An input of fc1 is kept only if its filter is kept; a filter is kept only if one of its inputs
    is.
    """

    conv1: Tensor
    conv2: Tensor
    inputs: Tensor
    hidden: Tensor

    def __post_init__(self) -> None:
        """Leave out units without an input or output."""
        by_filter = self.inputs.view(len(self.conv2), -1) & self.conv2.unsqueeze(1)
        object.__setattr__(self, "inputs", by_filter.flatten())
        object.__setattr__(self, "conv2", by_filter.any(1))

    @classmethod
    def whole(cls) -> Kept:
        """All units."""
        return cls(*(torch.ones(size, dtype=torch.bool) for size in astuple(WHOLE)))

    @property
    def architecture(self) -> Architecture:
        """Number of kept units."""
        return Architecture(*(int(getattr(self, name).sum()) for name in SETS))


def pruned_logits(layers: Mapping[str, Layer], kept: Kept, x: Tensor) -> Tensor:
    """Logits `[B, 10]` of images `[B, 1, 28, 28]`, from the kept units alone.

    Args:
        layers: weight and bias of each layer of the whole network.
        kept: the units that are kept; the outputs of the others are 0.
        x: the images.
    """
    x = max_pool2d(conv2d(x, *layers["conv1"]), 2) * kept.conv1.to(x)[:, None, None]
    x = max_pool2d(conv2d(x, *layers["conv2"]), 2).flatten(1) * kept.inputs.to(x)
    x = relu(linear(x, *layers["fc1"])) * kept.hidden.to(x)
    return linear(x, *layers["fc2"])
