"""A user's body with an output head for each task, or one head for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from vcl_radial.config.outside import format_error
from vcl_radial.errors import UserError
from vcl_radial.likelihoods.predict import in_mode
from vcl_radial.nn.convert import layer_settings, to_bayesian
from vcl_radial.nn.heads import make_heads
from vcl_radial.nn.precision import features_in
from vcl_radial.nn.weights import LayerSettings
from vcl_radial.posteriors import Posterior


class WithHeads(nn.Module):
    """Logits head_task(body(x)) from any network that returns features.

    Args:
        body: maps inputs `[B, *shape]` to features `[B, F]`. Its linear layers and convolutions get
            the posterior (see `vcl_radial.nn.convert.to_bayesian`); other modules do not change. A
            body without parameters needs a single head, which is then the only part with a
            posterior.
        shape: shape of one input.
        classes: outputs of a head.
        multi_head: whether each task has a head, instead of one head for all.
        posterior: settings of the variational family of all weights, or only its name or class;
            None or "none" for point estimates.
        point_heads: whether the heads have point estimates, whatever the body has.
        precision: "bfloat16" computes the products of the body in bfloat16 (autocast).

    Raises:
        UserError: The body's outputs are not features, or the body cannot be converted.
    """

    def __init__(
        self,
        body: nn.Module,
        shape: Sequence[int],
        classes: int,
        *,
        multi_head: bool = True,
        posterior: LayerSettings | str | type[Posterior] | None = "radial",
        point_heads: bool = False,
        precision: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.in_bfloat16 = precision == "bfloat16"
        settings = layer_settings(posterior)
        features = _features(body, shape)
        fixed = not multi_head and not point_heads and next(body.parameters(), None) is None
        self.body = body if settings is None or fixed else to_bayesian(body, settings)
        self.head = make_heads(
            features.shape[1],
            classes,
            multi_head=multi_head,
            posterior=None if point_heads else settings,
        ).to(features)

    def forward(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Logits `[B, C]` of inputs `[B, *shape]` under one draw of the weights."""
        features = features_in(self.body, x, bfloat16=self.in_bfloat16)
        logits: Tensor = self.head(features, task)
        return logits


@torch.no_grad()
def _features(body: nn.Module, shape: Sequence[int]) -> Tensor:
    """The body's output for an input of zeros in the type of its weights, `[1, F]`."""
    weights = (p for p in body.parameters() if p.is_floating_point() and not is_lazy(p))
    x = torch.zeros(1, *shape).to(next(weights, torch.zeros(0)))
    try:
        with in_mode(body, training=False):
            features = body(x)
    except Exception as error:  # a user's network may fail in any way
        raise UserError(
            f"the network fails on one input {list(shape)}: {format_error(error)}"
        ) from error
    output = list(features.shape) if isinstance(features, Tensor) else type(features).__name__
    if not isinstance(features, Tensor) or len(output) != 2 or not features.is_floating_point():
        raise UserError(
            f"the network has to map inputs [B, {', '.join(map(str, shape))}] to features [B, F]; "
            f"for one input it gives {output}"
        )
    return features
