"""Online Laplace approximation with Kronecker-factored curvature (Ritter, Botev and Barber 2018).

After task t the posterior is a Gaussian around the trained weights w_t, and the next task's
prior. Its precision has a block for each linear layer and each convolution, weights and bias
together:

    w_t  = argmin_w  -log p(D_t | w) + 1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}),       w_0 = 0
    L_t  = prior_precision * I + hessian_weight * sum_{s <= t} A_s (x) G_s

with A_s (x) G_s the Kronecker-factored Gauss-Newton matrix of task s at w_s: over all its training
points, exact over the classes. `hessian_weight` is the paper's lambda, a factor of each Hessian but
not of the first prior. Other weights, such as the scales of a batch norm, have the diagonal of
`vcl_radial.methods.laplace_diagonal`. Predictions use the weights w_t, as in the paper.

A sum of Kronecker products is not a Kronecker product. The method stores either the factors of
every task, and the sum is exact, or one product with the same partial traces, and the cost does not
grow with the number of tasks:

    sum_{s <= t} A_s (x) G_s  ~  A (x) G,   A = sum_s tr(G_s) A_s / sum_s tr(G_s),
                                            G = sum_s tr(A_s) G_s / tr(A)

The product is exact for one task, and if the A_s or the G_s of all tasks are multiples of one
matrix; `vcl_radial.curvature.kronecker.kronecker_sum` gives its error.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from vcl_radial.curvature import (
    KroneckerFactors,
    KroneckerQuadratic,
    diagonal_fisher,
    kronecker_factors,
)
from vcl_radial.curvature.gauss_newton import layers_in_full, other_weights
from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.methods.tasks import Task


class LaplaceKronecker(LaplaceMethod):
    """Carry N(w_t, L_t^-1) of the body and of the trained heads forward, L_t layer by layer.

    Args:
        factors: "all" stores the factors of every task, so that memory and the time of a step grow
            with the number of finished tasks; "summed" stores one product, so that neither grows.
        settings: settings of `LaplaceMethod`.

    Raises:
        UserError: an option is out of its range; in `end_task`, a layer is called twice.
    """

    carries = "one anchor, and the Kronecker factors of each layer's precision"
    grows = True

    past: KroneckerQuadratic

    def __init__(
        self, network: nn.Module, *, factors: Literal["all", "summed"] = "all", **settings: Any
    ) -> None:
        super().__init__(network, **settings)
        self.past = KroneckerQuadratic(summed=factors == "summed")

    def end_task(self, task: Task) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        weights = self.trained_parameters()
        layers = layers_in_full(self.network, weights)
        factors = kronecker_factors(
            self.network, layers, self.points(), self.likelihood.hessian_root
        )
        # A layer that no call used has no factors, but its weights may be in use.
        factored = {name: layers[name] for name in factors}
        diagonal = {name: weights[name] for name in other_weights(factored, weights)}
        self.carry(
            weights,
            diagonal_fisher(self.network, diagonal, self.points(), "predictive", self.likelihood)
            if diagonal
            else {},
        )
        self.past.add_factors(
            {
                name: KroneckerFactors(inputs, gradients * self.hessian_weight)
                for name, (inputs, gradients) in factors.items()
            }
        )
