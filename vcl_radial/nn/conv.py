"""Convolutions over images: Bayesian, and their point-estimate counterpart."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, Self, TypeAlias

from torch import Tensor, nn

from vcl_radial.errors import bad_value
from vcl_radial.nn.states import LayerWithKind
from vcl_radial.nn.weights import LayerSettings, PosteriorSettings, VariationalWeights

Pair = int | tuple[int, int]
"""One number for both height and width, or a pair."""

Convolution: TypeAlias = nn.Conv1d | nn.Conv2d | nn.Conv3d


def check_images(network: str, shape: Sequence[int], smallest: int = 1) -> None:
    """Check that inputs are images (C, H, W) of at least this height and width.

    Raises:
        UserError: they are not.
    """
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise bad_value(
            "network",
            network,
            f"wants images [C, H, W] of {smallest}x{smallest} pixels at least, and these inputs "
            f"are {[*shape]}: use network = 'mlp', or larger images",
        )


class PointConv2d(LayerWithKind, nn.Conv2d):
    """`torch.nn.Conv2d` that starts where the means of `BayesianConv2d` start."""

    def reset_parameters(self) -> None:
        """He's initialisation, biases at 0.

        Weights `[out, in / groups, kh, kw]` are drawn from N(0, 2 / (in / groups * kh * kw)):
        the variance is 2 over the number of inputs of one output (He et al. 2015, Eq. 10).
        """
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class BayesianConv(LayerWithKind):
    """A convolution that draws its weights from the posterior at every call.

    Shapes and options are the same as for the PyTorch layer.

    Args:
        plain: PyTorch's layer, of one, two or three dimensions.
        weights: the posterior over its weights.
    """

    plain: Convolution
    """The point-estimate layer with these options, without memory for weights."""

    def __init__(self, plain: Convolution, weights: VariationalWeights) -> None:
        super().__init__()
        self.weights = weights
        # The PyTorch layer only checks and applies the options: it has no memory for weights, and
        # is hidden from `parameters()` and `children()`.
        shapes = {id(p): nn.Parameter(p.detach().to("meta")) for p in plain.parameters()}
        object.__setattr__(self, "plain", copy.deepcopy(plain, shapes))

    @classmethod
    def from_plain(cls, plain: Convolution, weights: VariationalWeights) -> Self:
        """Make a layer of this class with the options of PyTorch's layer."""
        layer = cls.__new__(cls)
        BayesianConv.__init__(layer, plain, weights)
        return layer

    def forward(self, x: Tensor) -> Tensor:
        """Apply one draw of the layer."""
        y: Tensor = self.plain._conv_forward(x, *self.weights.sample())
        return y

    def extra_repr(self) -> str:
        """The options, as PyTorch shows them."""
        return str(self.plain.extra_repr())  # type: ignore[no-untyped-call]


class BayesianConv2d(BayesianConv):
    """y = W * x + b, a convolution that draws (W, b) from the posterior at every call.

    The whole batch and all positions of an image share one draw. Shapes: x `[B, in, H, W]` or
    `[in, H, W]`, y `[B, out, H', W']` or `[out, H', W']`, W `[out, in / groups, kh, kw]`,
    b `[out]`. The means start at He's initialisation, the biases at 0.

    Args:
        in_channels: channels of an input.
        out_channels: channels of an output; with `grouping="unit"` the weights and bias of one
            output channel share a radius.
        kernel_size: height and width of the kernel.
        stride: step of the kernel.
        padding: rows and columns added on each side, or "same" or "valid".
        dilation: distance between the input positions under the kernel.
        groups: blocks of channels that are connected only among themselves.
        bias: whether the layer has a bias b.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        posterior: settings of the posterior: its family, start and first prior.

    Raises:
        ValueError: The options do not fit together, as in `torch.nn.Conv2d`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair | str = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        posterior: LayerSettings | None = None,
    ) -> None:
        plain = PointConv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
        )
        weights = (posterior or PosteriorSettings()).make_weights(
            plain.weight.detach(), None if plain.bias is None else plain.bias.detach()
        )
        super().__init__(plain, weights)
