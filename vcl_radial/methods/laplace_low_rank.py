"""Online Laplace approximation whose precision is low rank plus diagonal.

After task t the posterior is a Gaussian around the trained weights w_t, and the next task's prior:

    w_t  = argmin_w  -log p(D_t | w) + 1/2 (w - w_{t-1})' L_{t-1} (w - w_{t-1}),       w_0 = 0
    L_t  ~ L_{t-1} + hessian_weight * H_t(w_t),        L_0 = prior_precision * I
    L_t  = diag(P_t) + V_t'V_t

with H_t the Gauss-Newton matrix of all weights of linear layers together, also across layers:
summed over the task's training points, exact over the classes. V_t are the `rank` largest
directions of V_{t-1}'V_{t-1} + hessian_weight * H_t. The rest of its diagonal is added to P_t, so
that L_t has the diagonal of `vcl_radial.methods.laplace_diagonal` at any rank: see
`vcl_radial.curvature.low_rank`. At full rank L_t is exact. Convolutions and other weights have the
diagonal alone.

Online Laplace is the method of Ritter, Botev and Barber (2018), with Kronecker products within
layers; the low-rank form is new in this suite. Predictions use the weights w_t.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from vcl_radial.config.ranges import Count
from vcl_radial.curvature import LowRankQuadratic, diagonal_fisher, gauss_newton_product
from vcl_radial.curvature.gauss_newton import layers_in_full, other_weights
from vcl_radial.methods.laplace import LaplaceMethod
from vcl_radial.methods.tasks import Task


class LaplaceLowRank(LaplaceMethod):
    """Carry N(w_t, L_t^-1) of the body and of the trained heads forward, L_t of low rank.

    Args:
        rank: number of directions in addition to the diagonal; it increases memory and the time of
            a step.
        settings: settings of `LaplaceMethod`.

    Raises:
        UserError: an option is out of its range; in `end_task`, a layer is called twice.
    """

    carries = "one anchor, and a diagonal and the `rank` largest directions of a layer's precision"
    past: LowRankQuadratic

    def __init__(self, network: nn.Module, *, rank: Count = 8, **settings: Any) -> None:
        super().__init__(network, **settings)
        self.past = LowRankQuadratic(rank)

    def end_task(self, task: Task) -> None:
        """Move the mode, and add the curvature of the body and of the trained heads."""
        weights = self.trained_parameters()
        layers = {
            name: layer
            for name, layer in layers_in_full(self.network, weights).items()
            if isinstance(layer, nn.Linear)
        }
        alone = other_weights(layers, weights)
        diagonal = diagonal_fisher(
            self.network, weights, self.points(), "predictive", self.likelihood
        )
        self.carry(weights, {name: diagonal[name] for name in alone})
        factor = self.hessian_weight
        self.past.add_curvature(
            lambda directions: {
                name: product * factor
                for name, product in gauss_newton_product(
                    self.network, layers, self.points(), directions, self.likelihood.hessian_root
                ).items()
            },
            {name: F * factor for name, F in diagonal.items() if name not in alone},
        )
