"""The multilayer perceptron of the continual-learning experiments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import relu

from vcl_radial.nn.convert import layer_settings
from vcl_radial.nn.dropout import MCDropout
from vcl_radial.nn.heads import make_heads
from vcl_radial.nn.linear import BayesianLinear, PointLinear
from vcl_radial.nn.precision import features_in
from vcl_radial.nn.weights import LayerSettings
from vcl_radial.posteriors import Posterior


class MLP(nn.Module):
    """Hidden ReLU layers and an output head for each task, or for all.

    The default is the network of Farquhar, Osborne and Gal 2020, Appendix D.2: four hidden layers
    of 200 units.

    Args:
        in_features: size of one flattened input.
        classes: outputs of a head.
        hidden: units of each hidden layer.
        multi_head: whether each task has a head, instead of one head for all.
        posterior: settings of the variational family of all weights, or only its name or class;
            None or "none" for point estimates.
        point_heads: whether the heads have point estimates, whatever the body has.
        precision: "bfloat16" computes the products of the body in bfloat16 (autocast); weights, KL
            and heads do not change.
        dropout: probability of `MCDropout` before every layer, the first one and the head too.
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        hidden: Sequence[int] = (200, 200, 200, 200),
        multi_head: bool = True,
        posterior: LayerSettings | str | type[Posterior] | None = "radial",
        point_heads: bool = False,
        precision: Literal["float32", "bfloat16"] = "float32",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_bfloat16 = precision == "bfloat16"
        settings = layer_settings(posterior)

        def layer(inputs: int, outputs: int) -> nn.Module:
            if settings is None:
                return PointLinear(inputs, outputs)
            return BayesianLinear(inputs, outputs, posterior=settings)

        widths = [in_features, *hidden]
        self.body = nn.ModuleList(layer(inputs, outputs) for inputs, outputs in pairwise(widths))
        self.head = make_heads(
            widths[-1],
            classes,
            multi_head=multi_head,
            posterior=None if point_heads else settings,
        )
        self.dropout = nn.ModuleList(MCDropout(dropout, width) for width in widths if dropout)

    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Logits `[B, C]` of inputs `[B, ...]` under one draw of the weights."""
        features = features_in(self._features, x.flatten(1), bfloat16=self.in_bfloat16)
        logits: Tensor = self.head(features, task)
        return logits

    def _features(self, x: Tensor) -> Tensor:
        for k, layer in enumerate(self.body):
            x = relu(layer(self._dropped(x, k)), inplace=True)
        return self._dropped(x, len(self.body))

    def _dropped(self, x: Tensor, k: int) -> Tensor:
        """The inputs of the k-th layer."""
        dropped: Tensor = self.dropout[k](x) if self.dropout else x
        return dropped
