"""MC dropout (Gal and Ghahramani 2016): a mask of inputs is a draw of the weights (a reference).

The posterior of a layer's weights has the columns M_j z_j / keep, z_j ~ Bernoulli(keep), and a mask
in training draws from it. Up to constants its divergence from the prior N(0, prior_scale^2) is
(their supplement, section 4.2)

    R = ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)

Masks drop inputs of all layers except the first, and whole channels of a convolution. In training
every row has a different mask. In a prediction all rows share one mask, so that the mask is a draw
of the weights and the output of a row is the same in any batch. Nothing is carried from task to
task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import Positive, ShareBelowOne
from vcl_radial.methods.base import Method
from vcl_radial.nn import MultiHead, SingleHead


class MCDropout(Method):
    """loss = mean NLL under masks + kl_weight * R / N; predictions draw masks too.

    Args:
        rate: fraction of the inputs that is dropped, 1 - keep, from 0 to below 1.
        prior_scale: scale of the prior N(0, prior_scale^2) of every weight.
        settings: settings of `Method`.

    Raises:
        UserError: the rate is out of its range, or the weights have a posterior already.
    """

    memoryless = True
    posteriors = frozenset({"none"})
    recipe_keys = frozenset({"eval_samples", "prior_scale"})

    def __init__(
        self,
        network: nn.Module,
        *,
        rate: ShareBelowOne = 0.1,
        prior_scale: Positive = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.keep, self.prior_scale = 1 - rate, prior_scale
        heads = [m for m in network.modules() if isinstance(m, MultiHead | SingleHead)]
        in_heads = {id(module) for head in heads for module in head.modules()}
        layers = [m for m in network.modules() if isinstance(m, _LAYERS) and id(m) not in in_heads]
        # The first layer's inputs are the network's, which are not dropped.
        self._masked = [*layers[1:], *heads] if rate else []
        self._masks = [_Mask(self.keep) for _ in self._masked]
        for module, mask in zip(self._masked, self._masks, strict=True):
            module.register_forward_pre_hook(mask)

    def penalty(self) -> Tensor:
        """R of the body and of the heads in use, in nats."""
        layers = [m for masked in self._masked for m in masked.modules() if isinstance(m, _LAYERS)]
        dropped = {id(layer.weight) for layer in layers}
        squares = [
            weight.square().sum() / (self.keep if id(weight) in dropped else 1.0)
            for weight in self.parameters_in_use().values()
        ]
        return torch.stack(squares).sum() / (2 * self.prior_scale**2)

    def draws(self, x: Tensor, task: int | Tensor = 0, **settings: Any) -> Tensor:
        """Outputs `[S, B, C]` under masks that all rows share, in any mode of the network."""
        with self._masks_by("all"):
            return super().draws(x, task, **settings)

    def outputs_at_means(self, x: Tensor, task: int | Tensor = 0) -> Tensor:
        """Outputs without masks, `[1, B, C]`: the mean of a weight is M."""
        with self._masks_by("none"):
            return super().outputs_at_means(x, task)

    @contextmanager
    def _masks_by(self, rows: Literal["all", "none"]) -> Iterator[None]:
        for mask in self._masks:
            mask.rows = rows
        try:
            yield
        finally:
            for mask in self._masks:
                mask.rows = "each"


_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class _Mask:
    """A hook that drops inputs of a layer: of each row, the same of all rows, or of none."""

    def __init__(self, keep: float) -> None:
        self.keep = keep
        self.rows: Literal["each", "all", "none"] = "each"

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.rows == "none":
            return inputs
        x, *rest = inputs
        # Channels of a convolution are the second axis, features of a linear layer the last one.
        axis = 1 if isinstance(module, _LAYERS[1:]) else x.dim() - 1
        shape = [1] * x.dim()
        shape[0], shape[axis] = 1 if self.rows == "all" else len(x), x.shape[axis]
        mask = torch.empty(shape, device=x.device, dtype=x.dtype).bernoulli_(self.keep)
        return (x * mask.div_(self.keep), *rest)
