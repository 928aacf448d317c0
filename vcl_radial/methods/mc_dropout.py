"""MC dropout (Gal and Ghahramani 2016): a draw of the weights is a mask of inputs (a reference).

The posterior of a layer's weights has the columns M_j z_j / keep, z_j ~ Bernoulli(keep), and a mask
in training draws from it. Up to constants its divergence from the prior N(0, prior_scale^2) is
(their supplement, section 4.2)

    R = ||M||^2 / (2 keep prior_scale^2) + ||b||^2 / (2 prior_scale^2)

The inputs of the network are kept; those of all other layers are dropped, of a convolution whole
channels. In training a row has a mask of its own. In a prediction all rows share one, so that it is
a draw of the weights, the same for a row in any batch. Nothing is carried from task to task.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.errors import UserError
from vcl_radial.methods.base import Method
from vcl_radial.nn import MultiHead, SingleHead, VariationalWeights


class MCDropout(Method):
    """loss = mean NLL under masks + penalty_weight * R / N; predictions draw masks too.

    Args:
        rate: the share of the inputs that is dropped, 1 - keep, from 0 to below 1.
        prior_scale: of the prior N(0, prior_scale^2) of every weight.
        settings: those of `Method`.

    Raises:
        UserError: the rate is out of its range, or the weights have a posterior already.
    """

    memoryless = True
    recipe_keys = frozenset({"eval_samples", "prior_scale"})

    def __init__(
        self, network: nn.Module, *, rate: float = 0.1, prior_scale: float = 1.0, **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        if not 0 <= rate < 1:
            raise UserError(f"options.rate = {rate} must be at least 0 and below 1")
        if any(isinstance(module, VariationalWeights) for module in network.modules()):
            raise UserError("MCDropout masks point estimates: set posterior = 'none'")
        self.keep, self.prior_scale = 1 - rate, prior_scale
        heads = [m for m in network.modules() if isinstance(m, MultiHead | SingleHead)]
        in_heads = {id(module) for head in heads for module in head.modules()}
        layers = [m for m in network.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        self._first = next((m for m in layers if id(m) not in in_heads), None)
        for module in [*(m for m in layers if id(m) not in in_heads), *heads]:
            if module is not self._first:
                module.register_forward_pre_hook(_Mask(self.keep))

    def penalty(self) -> Tensor:
        """R of the body and of the heads in use, in nats."""
        kept = set() if self._first is None else {id(self._first.weight)}
        squares = [
            w.square().sum() / (1.0 if w.dim() == 1 or id(w) in kept else self.keep)
            for w in self.parameters_in_use().values()
        ]
        return torch.stack(squares).sum() / (2 * self.prior_scale**2)


class _Mask:
    """A hook that drops inputs of a layer: of each row in training, else of all rows alike."""

    def __init__(self, keep: float) -> None:
        self.keep = keep

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, *others = inputs
        rows = len(x) if module.training else 1
        shape = (rows, x.shape[1], *(1 for _ in x.shape[2:]))
        mask = torch.empty(shape, device=x.device, dtype=x.dtype).bernoulli_(self.keep)
        return (x * mask.div_(self.keep), *others)
