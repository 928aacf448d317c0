"""The base class of the Laplace methods: an isotropic first prior and a quadratic penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vcl_radial.config.ranges import NotNegative
from vcl_radial.methods.quadratic import QuadraticMethod


class LaplaceMethod(QuadraticMethod):
    """A method that carries a Gaussian around the last task's weights as the prior.

    A weight that no task has trained yet has the first prior N(0, 1/prior_precision). Subclasses
    define `end_task`.

    Args:
        prior_precision: precision of the first prior; 0 for a flat one.
        hessian_weight: factor of each task's curvature, the lambda of Ritter, Botev and Barber
            (2018); it does not multiply the first prior.
        settings: settings of `Method`.

    Raises:
        UserError: one of the two is below 0.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        prior_precision: NotNegative = 1.0,
        hessian_weight: NotNegative = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(network, **settings)
        self.prior_precision, self.hessian_weight = prior_precision, hessian_weight

    def penalty(self) -> Tensor | float:
        """1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}) of the body and the heads in use, in nats."""
        weights = self.parameters_in_use()
        new = [w.square().sum() for name, w in weights.items() if name not in self.past.precision]
        return self.past.penalty(weights, self.loss_value) + sum(new) * self.prior_precision / 2

    @torch.no_grad()
    def carry(self, weights: Mapping[str, Tensor], hessians: Mapping[str, Tensor]) -> None:
        """Move the mode to these weights, and add their diagonal curvatures.

        A new weight gets the first prior too.
        """
        importances = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        for name, importance in importances.items():
            if name in hessians:
                importance.add_(hessians[name], alpha=self.hessian_weight)
            if name not in self.past.precision:
                importance.add_(self.prior_precision)
        self.past.carry(weights, importances)
