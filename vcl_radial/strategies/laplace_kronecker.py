"""Online Laplace approximation with Kronecker-factored curvature (Ritter, Botev and Barber 2018).

After task t the posterior is a Gaussian around the weights w_t that were found, and the next
task's prior. Its precision has a block for each linear layer, weights and bias together:

    w_t  = argmin_w  -log p(D_t | w) + 1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}),       w_0 = 0
    L_t  = prior_precision * I + hessian_weight * sum_{s <= t} A_s (x) G_s

with A_s (x) G_s the Kronecker-factored Gauss-Newton matrix of task s at w_s: over all its training
points, exact over the classes. The factors of every task are kept, so that the sum is exact.
`hessian_weight` is the paper's lambda, a factor of each Hessian as it is added and not of the first
prior. Predictions are those of the weights w_t, as in the paper.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vcl_radial.curvature import QuadraticMemory, parameters_in_use
from vcl_radial.curvature.gauss_newton import linear_layers
from vcl_radial.curvature.kronecker import (
    KroneckerFactors,
    KroneckerQuadratic,
    kronecker_factors,
)
from vcl_radial.errors import UserError
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceKronecker(QuadraticMemory, ContinualStrategy):
    """Carry N(w_t, L_t^-1) of the body and of the trained heads forward, L_t layer by layer.

    Memory and the time of a step grow with the number of finished tasks.

    Args:
        prior_precision: of the first prior N(0, 1/prior_precision), which a weight has until it is
            trained; 0 for a flat one.
        hessian_weight: the paper's lambda.
        settings: those of `ContinualStrategy`.

    Raises:
        UserError: the network has trained weights outside of linear layers.
    """

    past: KroneckerQuadratic

    def __init__(
        self, *, prior_precision: float = 1.0, hessian_weight: float = 1.0, **settings: Any
    ) -> None:
        super().__init__(**settings)
        if not prior_precision >= 0:
            raise UserError(f"prior_precision = {prior_precision} must not be below 0")
        if not hessian_weight >= 0:
            raise UserError(f"hessian_weight = {hessian_weight} must not be below 0")
        linear_layers(self.network, parameters_in_use(self.network, []))
        self.prior_precision, self.hessian_weight = prior_precision, hessian_weight
        self.past = KroneckerQuadratic()

    def penalty(self) -> Tensor | float:
        """1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}) of the body and the heads in use, in nats."""
        weights = parameters_in_use(self.network, self.tasks)
        new = [w.square().sum() for name, w in weights.items() if name not in self.past.precision]
        return self.past.penalty(weights, self.loss_value) + sum(new) * self.prior_precision / 2

    def consolidate(self, experience: Any) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        weights = self.trained_parameters()
        layers = linear_layers(self.network, weights)
        found = kronecker_factors(self.network, layers, self.points())
        self.past.replace(
            weights,
            {name: torch.full_like(w, self.prior_precision) for name, w in weights.items()},
        )
        self.past.add_factors(
            {
                name: KroneckerFactors(inputs, gradients * self.hessian_weight)
                for name, (inputs, gradients) in found.items()
            }
        )
