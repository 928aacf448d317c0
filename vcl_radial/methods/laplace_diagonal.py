"""Online Laplace approximation with diagonal curvature (Ritter, Botev and Barber 2018).

After task t the posterior is a Gaussian around the trained weights w_t, and the next task's prior:

    w_t  = argmin_w  -log p(D_t | w) + 1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1})
    L_t  = L_{t-1} + hessian_weight * H_t(w_t),        w_0 = 0,   L_0 = prior_precision * I

with H_t the diagonal of the Gauss-Newton matrix: summed over the task's training points, exact over
the classes. `hessian_weight` is the paper's lambda, a factor of each Hessian but not of the first
prior. Without this prior the method is `vcl_radial.methods.ewc` with fisher = "predictive" and
gamma = 1. Predictions use the weights w_t, as in the paper.
"""

from __future__ import annotations

from vcl_radial.curvature import diagonal_fisher
from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.methods.tasks import Task


class LaplaceDiagonal(LaplaceMethod):
    """Carry N(w_t, L_t^-1) of the body and of the trained heads forward, L_t diagonal.

    See `LaplaceMethod` for options and errors, and `Method` for settings.
    """

    grows = True

    def end_task(self, task: Task) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        weights = self.trained_parameters()
        self.carry(
            weights,
            diagonal_fisher(self.network, weights, self.points(), "predictive", self.likelihood),
        )
