"""The multilayer perceptron of the continual-learning experiments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import relu

from vcl_radial.nn.heads import MultiHead, SingleHead
from vcl_radial.nn.linear import BayesianLinear, PointLinear
from vcl_radial.nn.weights import PosteriorSettings


class MLP(nn.Module):
    """Hidden ReLU layers and an output head for each task, or for all.

    The default is the network of Farquhar, Osborne and Gal 2020, Appendix D.2: four hidden layers
    of 200 units.

    Args:
        in_features: size of one flattened input.
        classes: outputs of a head.
        hidden: units of each hidden layer.
        multi_head: a head for each task instead of one for all.
        posterior: a variational family for all weights, by its settings or just its name;
            None for point estimates.
    """

    def __init__(
        self,
        in_features: int,
        classes: int,
        *,
        hidden: Sequence[int] = (200, 200, 200, 200),
        multi_head: bool = True,
        posterior: PosteriorSettings | str | None = "radial",
    ) -> None:
        super().__init__()
        settings = PosteriorSettings(posterior) if isinstance(posterior, str) else posterior

        def layer(inputs: int, outputs: int) -> nn.Module:
            if settings is None:
                return PointLinear(inputs, outputs)
            return BayesianLinear(inputs, outputs, posterior=settings)

        widths = [in_features, *hidden]
        self.body = nn.ModuleList(layer(inputs, outputs) for inputs, outputs in pairwise(widths))
        self.head = (MultiHead if multi_head else SingleHead)(lambda: layer(widths[-1], classes))

    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Logits `[B, C]` of inputs `[B, ...]` under one draw of the weights."""
        x = x.flatten(1)
        for layer in self.body:
            x = relu(layer(x), inplace=True)
        logits: Tensor = self.head(x, task)
        return logits
