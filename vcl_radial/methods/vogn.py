"""Variational online Gauss-Newton (Khan et al. 2018; Osawa et al. 2019), carried forward.

    q_t = N(mean, 1 / precision) ~ argmin_q  E_q[ -log p(D_t | w) ] + KL(q || q_{t-1})

by natural-gradient steps, in which the squared gradients of single points approximate the Hessian:

    precision_t = precision_{t-1} + sum_i E_q[ g_i^2 ]

The prior is the whole previous posterior, a mean and a precision for each weight: its gradient and
its precision enter each step (`vcl_radial.optimizers.vogn`), not the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from vcl_radial.config.ranges import NotNegative
from vcl_radial.methods.natural_gradient import NaturalGradientMethod
from vcl_radial.nn import WeightPosterior
from vcl_radial.optimizers import vogn


class VOGN(NaturalGradientMethod):
    """Train by VOGN; the posterior of the body and of the trained heads becomes their prior.

    Args:
        damping: added to the curvature in the step of the means only.
        settings: settings of `NaturalGradientMethod`.

    Raises:
        UserError: an option is out of its range, or the network has layers that are not linear.
    """

    def __init__(self, network: nn.Module, *, damping: NotNegative = 1e-3, **settings: Any) -> None:
        super().__init__(network, **settings)
        vogn.linear_layers(network)
        self.damping = damping
        self._squares: vogn.GradientSquares | None = None

    def natural_optimizer(
        self, posteriors: Sequence[WeightPosterior], lr: float, ess: float
    ) -> Optimizer:
        """VOGN on these posteriors, with the current heads."""
        if self._squares is not None:
            self._squares.close()
        self._squares = vogn.GradientSquares(self.posterior.network)
        return vogn.VOGN(
            posteriors,
            self._squares,
            lr=lr,
            ess=ess,
            damping=self.damping,
            **self.decays,
        )
