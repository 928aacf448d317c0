"""Online Laplace approximation with diagonal curvature (Ritter, Botev and Barber 2018).

After task t the posterior is a Gaussian around the weights w_t that were found, and the next
task's prior:

    w_t  = argmin_w  -log p(D_t | w) + 1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1})
    L_t  = L_{t-1} + hessian_weight * H_t(w_t),        w_0 = 0,   L_0 = prior_precision * I

with H_t the diagonal of the Gauss-Newton matrix: summed over the task's training points, exact over
the classes. `hessian_weight` is the paper's lambda, a factor of each Hessian as it is added and not
of the first prior. Without that prior this is `vcl_radial.strategies.ewc` with fisher =
"predictive" and gamma = 1. Predictions are those of the weights w_t, as in the paper.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from vcl_radial.curvature import QuadraticMemory, diagonal_fisher, parameters_in_use
from vcl_radial.errors import UserError
from vcl_radial.strategies.base import ContinualStrategy


class LaplaceDiagonal(QuadraticMemory, ContinualStrategy):
    """Carry N(w_t, L_t^-1) of the body and of the trained heads forward, L_t diagonal.

    Args:
        prior_precision: of the first prior N(0, 1/prior_precision), which a weight has until it is
            trained; 0 for a flat one.
        hessian_weight: the paper's lambda.
        settings: those of `ContinualStrategy`.
    """

    def __init__(
        self, *, prior_precision: float = 1.0, hessian_weight: float = 1.0, **settings: Any
    ) -> None:
        super().__init__(**settings)
        if not prior_precision >= 0:
            raise UserError(f"prior_precision = {prior_precision} must not be below 0")
        if not hessian_weight >= 0:
            raise UserError(f"hessian_weight = {hessian_weight} must not be below 0")
        self.prior_precision, self.hessian_weight = prior_precision, hessian_weight

    def penalty(self) -> Tensor | float:
        """1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}) of the body and the heads in use, in nats."""
        weights = parameters_in_use(self.network, self.tasks)
        new = [w.square().sum() for name, w in weights.items() if name not in self.past.precision]
        return self.past.penalty(weights, self.loss_value) + sum(new) * self.prior_precision / 2

    def consolidate(self, experience: Any) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        weights = self.trained_parameters()
        found = diagonal_fisher(self.network, weights, self.points(), "predictive")
        for name, hessian in found.items():
            hessian.mul_(self.hessian_weight)
            if name not in self.past.precision:
                hessian.add_(self.prior_precision)
        self.past.carry(weights, found)
