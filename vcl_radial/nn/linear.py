"""Fully connected layers: Bayesian layers and their point-estimate counterpart."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from vcl_radial.nn.states import LayerWithKind
from vcl_radial.nn.weights import LayerSettings, PosteriorSettings


def he_normal(out_features: int, in_features: int) -> Tensor:
    """Draw weights `[out, in]` from N(0, 2 / in) (He et al. 2015, Eq. 10)."""
    weight = torch.empty(out_features, in_features)
    if weight.is_meta:  # there is nothing to draw, and PyTorch's import for it takes a second
        return weight
    return nn.init.kaiming_normal_(weight, nonlinearity="relu")


class BayesianLinear(LayerWithKind):
    """y = x W' + b, a layer that draws (W, b) from the posterior at every call.

    Shapes: x `[..., in_features]`, y `[..., out_features]`. The means start at He's
    initialisation, the biases at 0.
    """

    draws_of: Callable[[Tensor], Tensor | None] | None = None
    """If set, it computes the output for an input in place of a draw; see `nn.shared_inputs`."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        posterior: LayerSettings | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.has_bias = in_features, out_features, bias
        self.weights = (posterior or PosteriorSettings()).make_weights(
            he_normal(out_features, in_features), torch.zeros(out_features) if bias else None
        )

    @property
    def plain(self) -> nn.Linear:
        """The point-estimate layer of this shape, without memory for weights."""
        kind = next(self.weights.parameters()).dtype
        features = self.in_features, self.out_features
        return nn.Linear(*features, self.has_bias, device="meta", dtype=kind)

    def forward(self, x: Tensor) -> Tensor:
        """Apply one draw of the layer."""
        if self.draws_of is not None and (y := self.draws_of(x)) is not None:
            return y
        weight, bias = self.weights.sample()
        return linear(x, weight, bias)


class PointLinear(LayerWithKind, nn.Linear):
    """`torch.nn.Linear` that starts where the means of `BayesianLinear` start."""

    def reset_parameters(self) -> None:
        """He's initialisation, biases at 0."""
        with torch.no_grad():
            self.weight.copy_(he_normal(self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.zero_()
